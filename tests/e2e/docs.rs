//! Tests the pages for users: runs every call on them in order, through one host after the other, and compares each
//! answer with the answer printed below the call.
//!
//! `docs/page.rs` describes how a page marks calls, and `docs/pattern.rs` which parts of an answer may differ. With
//! `SELKIE_BLESS=1`, the run through the origin writes the actual answers into the page where they differ.

mod bless;
mod checkout;
mod coverage;
mod page;
mod pattern;
mod receivers;
mod rules;

use crate::host::Host;
use crate::service::{Edge, Service};
use checkout::{Checkout, Ran};
use page::{Example, Page};

cases! {
    Both: [every_call_on_the_pages_gives_the_answer_under_it],
    Origin: [every_option_stands_in_a_call_on_the_pages, every_operator_on_the_page_is_known],
    Own: [
        receivers_take_deliveries_and_refuse_forged_ones,
        every_shell_block_has_an_answer_or_a_reason,
        every_link_leads_somewhere,
        every_page_is_reached_from_the_readme,
        every_path_that_contributors_read_exists,
        a_page_is_read_as_its_fences_and_marks_say,
        an_answer_fits_where_only_what_is_left_open_differs,
        an_answer_that_is_written_reads_as_the_same,
    ],
}

/// Uses a service of its own, since the calls write and their answers depend on the original content of the demo.
async fn every_call_on_the_pages_gives_the_answer_under_it(host: Host) {
    let work = move || {
        let edge = match host {
            Host::Origin => Edge::Without,
            Host::Edge => Edge::With,
        };
        let service = Service::start(edge, &[]).expect("a service");
        let checkout = Checkout::new(&service, host);
        let (mut faults, mut as_filled) = (Vec::new(), true);
        for page in page::all() {
            if !as_filled {
                checkout.refill();
            }
            faults.extend(faults_of(&page, &checkout));
            as_filled = !page.may_write();
        }
        service.stop().expect("an end in order");
        faults
    };
    let faults = tokio::task::spawn_blocking(work).await.unwrap();
    assert!(
        faults.is_empty(),
        "answers differ from the pages:\n\n{}\nIf the pages are wrong, SELKIE_BLESS=1 mends them.",
        faults.join("\n")
    );
}

fn faults_of(page: &Page, checkout: &Checkout<'_>) -> Vec<String> {
    let ran = checkout.run(&page.examples);
    let blessing = checkout.host == Host::Origin && bless::wanted();
    if blessing {
        bless::mend(page, &ran);
    }
    let pairs = page.examples.iter().zip(ran);
    pairs
        .filter(|(example, ran)| !(blessing && bless::may_mend(example, ran)))
        .filter_map(|(example, ran)| fault_of(page, example, &ran))
        .collect()
}

fn fault_of(page: &Page, example: &Example, ran: &Ran) -> Option<String> {
    let differences = match (&example.answer, ran.ended_well) {
        (_, false) => vec!["the shell reports a failure".to_owned()],
        (None, true) if ran.output.trim().is_empty() => Vec::new(),
        (None, true) => vec!["it answers, and the page says that it does not".to_owned()],
        (Some(answer), true) if answer.text.is_empty() || ran.output.is_empty() => {
            vec!["an answer is empty".to_owned()]
        }
        (Some(answer), true) => pattern::differences(answer.kind, &answer.text, &ran.output),
    };
    (!differences.is_empty()).then(|| {
        format!(
            "{}:{}\n{}\n  {}\n  answer: {}{}\n",
            page.path.display(),
            example.line,
            indented(&example.script),
            differences.join("\n  "),
            ran.output.trim_end(),
            ran.errors.trim_end(),
        )
    })
}

fn indented(script: &str) -> String {
    let lines: Vec<String> = script.lines().map(|line| format!("  $ {line}")).collect();
    lines.join("\n")
}

async fn every_option_stands_in_a_call_on_the_pages(host: Host) {
    coverage::every_option_stands_in_a_call(host).await;
}

async fn every_operator_on_the_page_is_known(host: Host) {
    coverage::every_operator_on_the_page_is_known(host).await;
}

async fn every_shell_block_has_an_answer_or_a_reason(_: Host) {
    let faults: Vec<String> = page::all().iter().flat_map(|page| page.faults.clone()).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    let run: usize = page::all().iter().map(|page| page.examples.len()).sum();
    assert!(run > 10, "only {run} calls were found");
}

async fn receivers_take_deliveries_and_refuse_forged_ones(_: Host) {
    receivers::run_each().await;
}

async fn every_link_leads_somewhere(_: Host) {
    rules::links_lead_somewhere();
}

async fn every_page_is_reached_from_the_readme(_: Host) {
    rules::pages_are_reached();
}

async fn every_path_that_contributors_read_exists(_: Host) {
    rules::named_paths_exist();
}

async fn a_page_is_read_as_its_fences_and_marks_say(_: Host) {
    page::tests();
}

async fn an_answer_fits_where_only_what_is_left_open_differs(_: Host) {
    pattern::tests();
}

async fn an_answer_that_is_written_reads_as_the_same(_: Host) {
    bless::tests();
}
