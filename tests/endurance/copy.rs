//! A copy of the written tables that is made of their changes alone, as a reader of the feed or an endpoint of a webhook
//! keeps it. Each write adds one to its record's progress, so a change that is missing, or in the wrong order, shows.

use std::collections::HashMap;

use serde_json::Value;

use crate::{
    caller::{Caller, Refusal},
    tally::Messages,
    work::DATABASE,
};

/// The followed tables. A subscription of a webhook has its table's name as id.
pub(crate) const FOLLOWED: [&str; 2] = ["events", "counters"];

/// By table and id.
pub(crate) type Records = HashMap<(String, u64), Value>;

#[derive(Debug, Default)]
pub(crate) struct Copy {
    records: Records,
    /// Number of changes that were told for the first time.
    pub(crate) changes: u64,
    /// Number of changes that were told again.
    pub(crate) repeats: u64,
    /// Changes before which another one is missing.
    pub(crate) gaps: Messages,
}

/// Returns how often a record was written: an event once; a counter once, then by one of `version` or `total` each time.
fn progress(record: &Value) -> u64 {
    1 + record["version"].as_u64().unwrap_or_default() + record["total"].as_u64().unwrap_or_default()
}

impl Copy {
    /// Applies the changes of a page or a delivery. `table` is the table of changes without a subscription. The first change
    /// of a record may be an earlier one again; within a page or delivery, none may be skipped or repeated.
    pub(crate) fn apply(&mut self, changes: &[Value], table: &str) {
        let mut last: HashMap<(String, u64), u64> = HashMap::new();
        for change in changes {
            let key = key(change["subscription"].as_str().unwrap_or(table), &change["key"]);
            let told = progress(&change["record"]);
            let known = self.records.get(&key).map_or(0, progress);
            let kind = if told == 1 { "insert" } else { "update" };
            let follows = match last.insert(key.clone(), told) {
                Some(last) => told == last + 1,
                None => told <= known + 1,
            };
            if !follows || change["type"] != kind {
                self.gaps.add(format!("{change} of {key:?}, after {known} changes"));
            }
            if told > known {
                self.changes += 1;
                self.records.insert(key, change["record"].clone());
            } else {
                self.repeats += 1;
            }
        }
    }

    /// Replaces the records of a table by those of a snapshot.
    pub(crate) fn replace(&mut self, table: &str, records: &[Value]) {
        self.records.retain(|(known, _), _| known != table);
        self.records.extend(records.iter().map(|message| (key(table, &message["key"]), message["record"].clone())));
    }

    /// Returns a message for each listed record that the copy lacks or has in another state, and for each record that only
    /// the copy has. Other tables than `tables` are not compared.
    pub(crate) fn differences(&self, listed: &Records, tables: &[&str]) -> Messages {
        let mut found = Messages::default();
        let is_compared = |(table, _): &&(String, u64)| tables.contains(&table.as_str());
        for key in listed.keys().chain(self.records.keys().filter(|key| !listed.contains_key(*key))).filter(is_compared)
        {
            let (is, told) = (listed.get(key), self.records.get(key));
            if is != told {
                let text = |record: Option<&Value>| record.map_or("nothing".to_owned(), Value::to_string);
                found.add(format!("{key:?} is {}, and {} was told", text(is), text(told)));
            }
        }
        found
    }
}

fn key(table: &str, key: &Value) -> (String, u64) {
    (table.to_owned(), key.as_u64().unwrap_or_default())
}

/// Reads all records of the followed tables by lists.
pub(crate) async fn listed(caller: &mut Caller) -> Result<Records, Refusal> {
    const PAGE: usize = 1_000;
    let mut all = Records::new();
    for table in FOLLOWED {
        let mut after = String::new();
        loop {
            let path = format!("/api/v1/crud/{DATABASE}/{table}?order=id&limit={PAGE}{after}");
            let body = caller.look(path).await?.whole();
            let records = body["payload"].as_array().map(Vec::as_slice).unwrap_or_default();
            all.extend(records.iter().map(|record| (key(table, &record["id"]), record.clone())));
            match body["next"].as_str() {
                Some(next) => after = format!("&after={next}"),
                None => break,
            }
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn counter(version: u64) -> Value {
        let kind = if version == 0 { "insert" } else { "update" };
        json!({"type": kind, "key": 1, "record": {"id": 1, "version": version, "total": 0}, "subscription": "counters"})
    }

    #[test]
    fn a_change_that_is_missing_or_out_of_order_shows() {
        let [zero, one, two, three] = [0, 1, 2, 3].map(counter);
        let deliveries: [(&[&[&Value]], u64, u64); 5] = [
            (&[&[&zero, &one], &[&two]], 0, 0),
            (&[&[&zero, &one], &[&zero, &one, &two]], 0, 2),
            (&[&[&zero], &[&two]], 1, 0),
            (&[&[&zero, &two, &one]], 2, 1),
            (&[&[&zero, &one, &two, &three], &[&one, &three]], 1, 2),
        ];
        for (deliveries, gaps, repeats) in deliveries {
            let mut copy = Copy::default();
            for delivery in deliveries {
                copy.apply(&delivery.iter().map(|change| (*change).clone()).collect::<Vec<_>>(), "");
            }
            assert_eq!((copy.gaps.count, copy.repeats), (gaps, repeats), "{deliveries:?}");
        }
    }

    #[test]
    fn a_record_that_was_not_told_or_is_not_there_is_a_difference() {
        let mut copy = Copy::default();
        copy.apply(&[counter(0)], "");
        let listed = |version: u64| Records::from([(("counters".to_owned(), 1), counter(version)["record"].clone())]);
        let different = |listed: &Records| copy.differences(listed, &FOLLOWED).count;
        assert_eq!([&listed(0), &listed(1), &Records::new()].map(different), [0, 1, 1]);
        assert_eq!(Copy::default().differences(&listed(0), &FOLLOWED).count, 1);
    }
}
