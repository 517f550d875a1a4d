//! `spotcheck endpoint status`, `list` and `logs`: the status, cost and deletion time of an endpoint, the endpoints of
//! the account and region, and the newest log lines of their containers.

use std::io::Write;

use anyhow::bail;
use clap::Args;
use serde_json::{Value, json};

use super::EndpointContext;
use crate::aws::{Aws, SageMaker};
use crate::cli::Outcome;
use crate::cli::terminal::{local_time, print_log, stdout, with_progress};
use crate::cli::transform::list::{Format, time_json};
use crate::cli::values::{Account, AccountArgs, parse_endpoint_name, parse_positive};
use crate::sagemaker::endpoints::wait_for;
use crate::sagemaker::jobs::read_prices;
use crate::sagemaker::log::endpoint_log_tail;
use crate::sagemaker::spec::endpoint::{Endpoint, EndpointQuery, EndpointRecord, EndpointStatus, cost_since};
use crate::sagemaker::spec::transform::human_usd;
use crate::tasks::{TaskControl, now_ms};

#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    /// Endpoint name
    #[arg(value_parser = parse_endpoint_name)]
    name: String,
    /// Wait until the endpoint reaches a final status
    #[arg(long)]
    watch: bool,
    /// Price of one instance in USD per hour [default: the price at deployment, or from the price table]
    #[arg(long, value_name = "USD", value_parser = parse_positive)]
    hourly_price: Option<f64>,
    #[command(flatten)]
    account: AccountArgs,
}

pub(crate) fn run(args: &StatusArgs, context: &EndpointContext) -> anyhow::Result<Outcome> {
    let access = context.access_to(&args.name, &args.account);
    let sagemaker = Aws::new().sagemaker(&access);
    let region = sagemaker.region(&context.control)?;
    let record = context.records.find(&args.name, &region)?;
    let Some(endpoint) = sagemaker.describe_endpoint(&args.name, &context.control)? else {
        return not_there(&args.name, &region, record.as_ref());
    };
    let cost = match &record {
        Some(record) => CostSoFar::from_record(record, args.hourly_price),
        None => CostSoFar::from_endpoint(&sagemaker, &endpoint, &region, args.hourly_price, context)?,
    };
    cost.print_note(now_ms());
    if let Some(record) = &record {
        print_deletion_time(record, now_ms());
    }
    if args.watch {
        return settled(&sagemaker, &args.name, &context.control);
    }
    conclude(&endpoint)
}

fn not_there(name: &str, region: &str, record: Option<&EndpointRecord>) -> anyhow::Result<Outcome> {
    match record {
        Some(record) if record.is_started => bail!(
            "endpoint {name} was deleted in {region} by another program. Delete what was created for it with: \
             spotcheck endpoint delete {name}"
        ),
        Some(_) => bail!(
            "endpoint {name} was never started in {region}. Delete what was created for it with: spotcheck endpoint \
             delete {name}"
        ),
        None => bail!("endpoint {name} does not exist in {region}"),
    }
}

/// The cost of an endpoint, as far as known.
pub(crate) struct CostSoFar {
    is_serverless: bool,
    /// The price of one instance.
    usd_per_hour: Option<f64>,
    instances: u32,
    since_ms: i64,
}

impl CostSoFar {
    pub(crate) fn from_record(record: &EndpointRecord, given: Option<f64>) -> Self {
        Self {
            is_serverless: record.config.serverless.is_some(),
            usd_per_hour: given.or(record.usd_per_hour),
            instances: record.config.instance_count,
            since_ms: record.created_ms,
        }
    }

    /// The cost of an endpoint that was deployed from another computer, derived from its configuration.
    fn from_endpoint(
        sagemaker: &SageMaker,
        endpoint: &Endpoint,
        region: &str,
        given: Option<f64>,
        context: &EndpointContext,
    ) -> anyhow::Result<Self> {
        let config = match &endpoint.config_name {
            Some(name) => sagemaker.describe_endpoint_config(name, &context.control).ok().flatten(),
            None => None,
        };
        let instance_type = config.as_ref().and_then(|config| config.instance_type.as_deref());
        let prices = read_prices(&context.dirs.prices())?;
        let known = instance_type.and_then(|instance| prices.find(instance, Some(region)));
        let running: u32 = endpoint.variants.iter().map(|variant| variant.instances).sum();
        Ok(Self {
            is_serverless: config.as_ref().is_some_and(|config| config.serverless.is_some()),
            usd_per_hour: given.or(known.map(|price| price.usd_per_hour)),
            instances: match config {
                Some(config) => config.instance_count,
                None => running.max(1),
            },
            since_ms: endpoint.created_ms,
        })
    }

    /// Instances are billed only from their start, so slightly less than this.
    pub(crate) fn print_note(&self, now_ms: i64) {
        if self.is_serverless {
            return eprintln!("serverless: billed only for requests");
        }
        let Some(price) = self.usd_per_hour else {
            return eprintln!(
                "cost unknown: set the price of an instance with --hourly-price, or add it to the price table"
            );
        };
        let (so_far, hour) = cost_since(price, self.instances, self.since_ms, now_ms);
        eprintln!(
            "cost so far: about {}, {} per hour since {}",
            human_usd(so_far),
            human_usd(hour),
            local_time(self.since_ms)
        );
    }
}

/// When it will be deleted, or how to delete it.
pub(crate) fn print_deletion_time(record: &EndpointRecord, now_ms: i64) {
    let Some(at_ms) = record.delete_at_ms else {
        return match record.config.serverless {
            Some(_) => eprintln!("delete it with: spotcheck endpoint delete {}", record.name),
            None => eprintln!("billed continuously until you run: spotcheck endpoint delete {}", record.name),
        };
    };
    let minutes = (at_ms - now_ms).max(0).div_euclid(60_000);
    let minutes = match minutes {
        0 => "less than a minute".to_owned(),
        1 => "1 minute".to_owned(),
        minutes => format!("{minutes} minutes"),
    };
    eprintln!(
        "will be deleted at {} (in {minutes}) if Spotcheck is running, otherwise at its next start",
        local_time(at_ms)
    );
}

/// Waits until the endpoint's status is final.
pub(crate) fn settled(sagemaker: &SageMaker, name: &str, control: &TaskControl) -> anyhow::Result<Outcome> {
    let found = with_progress("Waiting", control, || wait_for(sagemaker, name, None, control));
    let found = match found {
        Err(_) if control.is_cancelled() => bail!(
            "stopped waiting; endpoint {name} still costs money. Wait again with: spotcheck endpoint status {name} \
             --watch. Delete it with: spotcheck endpoint delete {name}"
        ),
        found => found?,
    };
    match found {
        Some(endpoint) => conclude(&endpoint),
        None => bail!("endpoint {name} was deleted while this command waited"),
    }
}

/// Prints name and status to stdout.
fn conclude(endpoint: &Endpoint) -> anyhow::Result<Outcome> {
    let mut out = stdout();
    writeln!(out, "{}\t{}", endpoint.name, endpoint.status)?;
    if matches!(endpoint.status, EndpointStatus::Failed | EndpointStatus::UpdateRollbackFailed) {
        let why = endpoint.failure.as_deref().unwrap_or("AWS reports no reason");
        bail!(
            "endpoint {name} failed: {why}. Its log is /aws/sagemaker/Endpoints/{name} in CloudWatch Logs. Delete it \
             with: spotcheck endpoint delete {name}",
            name = endpoint.name
        );
    }
    Ok(Outcome::AllWell)
}

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

pub(crate) fn run_list(args: &ListArgs, context: &EndpointContext) -> anyhow::Result<Outcome> {
    let sagemaker = Aws::new().sagemaker(&args.account.sagemaker());
    let region = sagemaker.region(&context.control)?;
    let mut query = EndpointQuery { name_contains: args.name_contains.clone(), ..EndpointQuery::default() };
    let mut endpoints = Vec::new();
    loop {
        let page = sagemaker.list_endpoints(&query, &context.control)?;
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

fn list_json(endpoints: &[Endpoint]) -> Value {
    let endpoint = |endpoint: &Endpoint| {
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

#[derive(Debug, Args)]
pub(crate) struct LogsArgs {
    /// Endpoint name
    #[arg(value_parser = parse_endpoint_name)]
    name: String,
    /// Number of most recent lines
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    lines: u32,
    #[command(flatten)]
    account: AccountArgs,
}

pub(crate) fn run_logs(args: &LogsArgs, context: &EndpointContext) -> anyhow::Result<Outcome> {
    let access = context.access_to(&args.name, &args.account);
    let sagemaker = Aws::new().sagemaker(&access);
    let control = &context.control;
    let lines = endpoint_log_tail(&sagemaker, &args.name, args.lines, control)?;
    if lines.is_empty() {
        // The log of an endpoint outlives it.
        if sagemaker.describe_endpoint(&args.name, control)?.is_none() {
            let region = sagemaker.region(control)?;
            bail!("endpoint {} does not exist in {region} and has no log", args.name);
        }
        eprintln!("the log of {} is still empty", args.name);
    }
    print_log(&lines)?;
    Ok(Outcome::AllWell)
}
