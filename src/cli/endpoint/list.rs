//! `spotcheck endpoint list`: the endpoints of the account and region.

use std::io::Write;

use clap::Args;
use serde_json::{Value, json};

use super::EndpointContext;
use crate::aws::Aws;
use crate::cli::Outcome;
use crate::cli::account::{Account, AccountArgs};
use crate::cli::terminal::stdout;
use crate::cli::transform::json::{Format, time_json};
use crate::sagemaker::spec::endpoint::{EndpointQuery, EndpointSummary};

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// List only endpoints whose name contains this text
    #[arg(long, value_name = "TEXT")]
    name_contains: Option<String>,
    /// Output format; json is a list with one object per endpoint
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    output: Format,
    #[command(flatten)]
    account: AccountArgs,
}

pub(crate) fn run(args: &ListArgs, context: &EndpointContext) -> anyhow::Result<Outcome> {
    args.account.warn_if_unknown();
    let sagemaker = Aws::new().sagemaker(&args.account.sagemaker());
    let region = sagemaker.region(Some(&context.control))?;
    let mut query = EndpointQuery { name_contains: args.name_contains.clone(), ..EndpointQuery::default() };
    let mut endpoints = Vec::new();
    loop {
        let page = sagemaker.list_endpoints(&query, Some(&context.control))?;
        endpoints.extend(page.items);
        match page.next {
            Some(next) => query.page_token = Some(next),
            None => break,
        }
    }
    let mut out = stdout();
    match args.output {
        Format::Json => writeln!(out, "{:#}", list_json(&endpoints))?,
        Format::Text if endpoints.is_empty() => eprintln!("no matching endpoints in {region}"),
        Format::Text => {
            for endpoint in endpoints {
                writeln!(out, "{}\t{}", endpoint.name, endpoint.status)?;
            }
        }
    }
    print_other_regions(context, &region);
    Ok(Outcome::AllWell)
}

fn list_json(endpoints: &[EndpointSummary]) -> Value {
    let endpoint = |endpoint: &EndpointSummary| {
        json!({
            "endpoint": endpoint.name,
            "status": endpoint.status.to_string(),
            "created": time_json(endpoint.created_ms),
        })
    };
    endpoints.iter().map(endpoint).collect()
}

/// Endpoints in other regions also cost money, and are easily forgotten.
fn print_other_regions(context: &EndpointContext, region: &str) {
    let (records, problems) = context.records.all();
    for problem in problems {
        eprintln!("warning: {problem}");
    }
    for record in records {
        let of_record = record.sagemaker.region.as_deref().unwrap_or_default();
        if of_record != region {
            eprintln!(
                "deployed from this computer in {of_record}: {name}; check it with: spotcheck endpoint status {name}",
                name = record.name
            );
        }
    }
}
