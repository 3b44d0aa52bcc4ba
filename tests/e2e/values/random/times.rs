//! Random dates and times, in every format that is accepted.

use super::{Equal, Samples, come_back, quoted};
use crate::host::Host;
use proptest::prelude::*;
use proptest::sample::select;

cases! {
    Both: [random_times_come_back_and_are_found],
}

fn fractions(kept: usize) -> impl Strategy<Value = (String, String)> {
    prop::collection::vec(0..10_u8, 0..=9).prop_map(move |digits| {
        let digits: String = digits.iter().map(u8::to_string).collect();
        let sent = if digits.is_empty() { String::new() } else { format!(".{digits}") };
        let out: String = format!("{digits:0<6}").chars().take(kept).collect();
        (sent, if kept == 0 { String::new() } else { format!(".{out}") })
    })
}

/// Returns dates and times for a column with `kept` fractional digits. A time with an offset is on the same day in UTC.
fn moments(years: std::ops::Range<u16>, kept: usize) -> Samples {
    let day = (years, 1..13_u8, 1..29_u8).prop_map(|(year, month, day)| format!("{year:04}-{month:02}-{day:02}"));
    let clock = (6..18_u8, 0..60_u8, 0..60_u8);
    let zone = select(&["", "Z", "z", "+00:00", "-00:00", "+05:30", "-06:00"][..]);
    (day, clock, fractions(kept), select(&[" ", "T", "t"][..]), zone)
        .prop_map(|(day, (hour, minute, second), (fraction, kept), mark, zone)| {
            let (hours, minutes) = match zone {
                "+05:30" => (5, 30),
                "-06:00" => (-6, 0),
                _ => (0, 0),
            };
            let local = i32::from(hour) * 60 + i32::from(minute) + hours * 60 + minutes;
            let sent = format!("{day}{mark}{:02}:{:02}:{second:02}{fraction}{zone}", local / 60, local % 60);
            (quoted(&sent), quoted(&format!("{day} {hour:02}:{minute:02}:{second:02}{kept}")))
        })
        .boxed()
}

async fn random_times_come_back_and_are_found(host: Host) {
    for kept in [0, 1, 3, 6] {
        come_back(host, &format!("DATETIME({kept})"), Equal::Exactly, &moments(1..9999, kept)).await;
        let stamp = format!("TIMESTAMP({kept}) NULL");
        come_back(host, &stamp, Equal::Exactly, &moments(1971..2037, kept)).await;
        let times = (any::<bool>(), 0..839_u16, 0..60_u8, 0..60_u8, fractions(kept)).prop_map(
            |(negative, hour, minute, second, (fraction, kept))| {
                let clock = format!("{hour:02}:{minute:02}:{second:02}");
                let zero = format!("{clock}{kept}").bytes().all(|byte| b"0:.".contains(&byte));
                let sign = |shown: bool| if shown { "-" } else { "" };
                let sent = format!("{}{clock}{fraction}", sign(negative));
                (quoted(&sent), quoted(&format!("{}{clock}{kept}", sign(negative && !zero))))
            },
        );
        come_back(host, &format!("TIME({kept})"), Equal::Exactly, &times.boxed()).await;
    }
    // Dates may have zeros for an unknown month or day.
    let dates = (0..10_000_u16, 0..13_u8, 0..29_u8).prop_map(|(year, month, day)| {
        let date = quoted(&format!("{year:04}-{month:02}-{day:02}"));
        (date.clone(), date)
    });
    come_back(host, "DATE", Equal::Exactly, &dates.boxed()).await;
}
