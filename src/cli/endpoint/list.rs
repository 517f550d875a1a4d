//! `spotcheck endpoint list`: the endpoints of the account and region.

use std::io::Write;

use clap::Args;

use super::EndpointContext;
use crate::aws::Aws;
use crate::cli::Outcome;
use crate::cli::account::{Account, AccountArgs};
use crate::cli::terminal::stdout;
use crate::domain::EndpointQuery;

#[derive(Debug, Args)]
pub(super) struct ListArgs {
    /// Only endpoints whose name contains this text
    #[arg(long, value_name = "TEXT")]
    name_contains: Option<String>,
    #[command(flatten)]
    account: AccountArgs,
}

pub(super) fn run(args: &ListArgs, context: &EndpointContext) -> anyhow::Result<Outcome> {
    args.account.warn_if_unknown();
    let sagemaker = Aws::new().sagemaker(&args.account.sagemaker());
    let region = sagemaker.region(Some(&context.control))?;
    let mut query = EndpointQuery { name_contains: args.name_contains.clone(), ..EndpointQuery::default() };
    let mut out = stdout();
    let mut is_empty = true;
    loop {
        let page = sagemaker.list_endpoints(&query, Some(&context.control))?;
        for endpoint in page.items {
            is_empty = false;
            writeln!(out, "{}\t{}", endpoint.name, endpoint.status)?;
        }
        match page.next {
            Some(next) => query.page_token = Some(next),
            None => break,
        }
    }
    if is_empty {
        eprintln!("no matching endpoints in {region}");
    }
    print_other_regions(context, &region);
    Ok(Outcome::AllWell)
}

/// Endpoints in other regions cost money too and are easily forgotten.
fn print_other_regions(context: &EndpointContext, region: &str) {
    let (records, problems) = context.records.all();
    for problem in problems {
        eprintln!("warning: {problem}");
    }
    for record in records {
        let of_record = record.sagemaker.region.as_deref().unwrap_or_default();
        if of_record != region {
            eprintln!(
                "deployed from here in {of_record}: {name}; check it with: spotcheck endpoint status {name}",
                name = record.name
            );
        }
    }
}
