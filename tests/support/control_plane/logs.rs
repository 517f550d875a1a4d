//! `CloudWatch` Logs: groups, streams and events.

use std::collections::BTreeMap;
use std::time::SystemTime;

use serde_json::{Value, json};

use super::{ACCOUNT, REGION, Refusal, Shared, seconds, text};

const JOBS: &str = "/aws/sagemaker/TransformJobs";
/// The events per page, unless fewer are requested; AWS's pages have up to a megabyte, and may be shorter.
const PAGE: usize = 500;

#[derive(Debug, Default)]
pub(super) struct Logs {
    groups: BTreeMap<String, BTreeMap<String, Stream>>,
    events: usize,
}

#[derive(Debug, Default)]
pub(super) struct Stream {
    created_ms: i64,
    events: Vec<Event>,
}

#[derive(Debug)]
struct Event {
    id: usize,
    at_ms: i64,
    message: String,
}

impl Logs {
    /// Adds a line to a stream, which is created if necessary.
    pub(super) fn write(&mut self, group: &str, stream: &str, message: &str) {
        // Events cannot have an empty message.
        if message.is_empty() {
            return;
        }
        let at_ms = now_ms();
        self.open(group, stream);
        self.events += 1;
        let id = self.events;
        let stream = self.groups.get_mut(group).unwrap().get_mut(stream).unwrap();
        stream.events.push(Event { id, at_ms, message: message.to_owned() });
    }

    /// Creates an empty stream.
    pub(super) fn open(&mut self, group: &str, stream: &str) {
        let streams = self.groups.entry(group.to_owned()).or_default();
        streams.entry(stream.to_owned()).or_insert_with(|| Stream { created_ms: now_ms(), events: Vec::new() });
    }

    pub(super) fn open_for_job(&mut self, stream: &str) {
        self.open(JOBS, stream);
    }

    pub(super) fn write_for_job(&mut self, stream: &str, message: &str) {
        self.write(JOBS, stream, message);
    }

    /// `<time>:[sagemaker logs]: <message>`
    pub(super) fn write_data_log(&mut self, stream: &str, message: &str) {
        let now = jiff::Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC);
        let time = now.strftime("%Y-%m-%dT%H:%M:%S%.3f");
        self.write(JOBS, stream, &format!("{time}:[sagemaker logs]: {message}"));
    }

    pub(super) fn streams_of_jobs<'l>(&'l self, job: &str) -> impl Iterator<Item = (&'l String, &'l Stream)> + use<'l> {
        let prefix = format!("{job}/");
        let streams = self.groups.get(JOBS).into_iter().flatten();
        streams.filter(move |(name, _)| name.starts_with(&prefix))
    }

    fn group(&self, request: &Value) -> Result<&BTreeMap<String, Stream>, Refusal> {
        let name = match request["logGroupIdentifier"].as_str() {
            Some(identifier) => identifier.rsplit(":log-group:").next().unwrap_or_default(),
            None => text(request, "logGroupName"),
        };
        self.groups.get(name).ok_or_else(|| not_found("The specified log group does not exist."))
    }
}

impl Stream {
    pub(super) fn messages(&self) -> Vec<String> {
        let events = self.events.iter();
        events.map(|event| event.message.clone()).collect()
    }

    fn describe(&self, group: &str, name: &str) -> Value {
        let mut stream = json!({
            "logStreamName": name,
            "creationTime": self.created_ms,
            "arn": format!("arn:aws:logs:{REGION}:{ACCOUNT}:log-group:{group}:log-stream:{name}"),
            "storedBytes": 0,
        });
        if let [first, .., last] | [first @ last] = self.events.as_slice() {
            stream["firstEventTimestamp"] = first.at_ms.into();
            stream["lastEventTimestamp"] = last.at_ms.into();
            stream["lastIngestionTime"] = last.at_ms.into();
        }
        stream
    }
}

fn not_found(message: &str) -> Refusal {
    Refusal::new("ResourceNotFoundException", message)
}

fn invalid(message: &str) -> Refusal {
    Refusal::new("InvalidParameterException", message)
}

fn now_ms() -> i64 {
    (seconds(SystemTime::now()) * 1000.0) as i64
}

fn in_time(event: &Event, request: &Value) -> bool {
    let from = request["startTime"].as_i64().unwrap_or(i64::MIN);
    let to = request["endTime"].as_i64().unwrap_or(i64::MAX);
    (from..to).contains(&event.at_ms)
}

fn limit(request: &Value, most: usize) -> usize {
    request["limit"].as_u64().map_or(most, |limit| most.min(limit as usize))
}

impl Shared {
    pub(super) fn describe_log_streams(&self, request: &Value) -> Result<Value, Refusal> {
        let world = self.world();
        let prefix = text(request, "logStreamNamePrefix");
        let by_time = text(request, "orderBy") == "LastEventTime";
        if by_time && !prefix.is_empty() {
            return Err(invalid("Cannot order by LastEventTime with a logStreamNamePrefix."));
        }
        let group = world.logs.group(request)?;
        let mut streams: Vec<_> = group.iter().filter(|(name, _)| name.starts_with(prefix)).collect();
        if by_time {
            streams.sort_by_key(|(_, stream)| stream.events.last().map(|event| event.id));
        }
        if request["descending"] == true {
            streams.reverse();
        }
        let start = match request["nextToken"].as_str() {
            None => 0,
            Some(token) => {
                let last = streams.iter().position(|(name, _)| format!("after:{name}") == token);
                last.ok_or_else(|| invalid("The specified nextToken is invalid."))? + 1
            }
        };
        let end = (start + limit(request, 50)).min(streams.len());
        let group_name = text(request, "logGroupName");
        let page: Vec<_> = streams[start..end].iter().map(|(name, stream)| stream.describe(group_name, name)).collect();
        let mut response = json!({"logStreams": page});
        if end < streams.len() {
            response["nextToken"] = format!("after:{}", streams[end - 1].0).into();
        }
        Ok(response)
    }

    pub(super) fn get_log_events(&self, request: &Value) -> Result<Value, Refusal> {
        let world = self.world();
        let stream = world
            .logs
            .group(request)?
            .get(text(request, "logStreamName"))
            .ok_or_else(|| not_found("The specified log stream does not exist."))?;
        let events: Vec<&Event> = stream.events.iter().filter(|event| in_time(event, request)).collect();
        let limit = limit(request, PAGE);
        // A token names the event that the page starts after or ends before.
        let position = |id: usize| events.partition_point(|event| event.id <= id);
        let bad = || invalid("The specified nextToken is invalid.");
        let range = match request["nextToken"].as_str() {
            None if request["startFromHead"] == true => 0..limit.min(events.len()),
            None => events.len().saturating_sub(limit)..events.len(),
            Some(token) => match token.split_once('/') {
                Some(("f", id)) => {
                    let start = position(id.parse().map_err(|_| bad())?);
                    start..(start + limit).min(events.len())
                }
                Some(("b", id)) => {
                    let end = position(id.parse::<usize>().map_err(|_| bad())?.saturating_sub(1));
                    end.saturating_sub(limit)..end
                }
                _ => return Err(bad()),
            },
        };
        let forward = match range.end {
            0 => 0,
            end => events[end - 1].id,
        };
        let backward = events.get(range.start).map_or(forward + 1, |event| event.id);
        let page: Vec<_> = events[range]
            .iter()
            .map(|event| json!({"timestamp": event.at_ms, "message": event.message, "ingestionTime": event.at_ms}))
            .collect();
        Ok(json!({
            "events": page,
            "nextForwardToken": format!("f/{forward:056}"),
            "nextBackwardToken": format!("b/{backward:056}"),
        }))
    }

    /// `filterPattern` is one word, or several in quotation marks.
    pub(super) fn filter_log_events(&self, request: &Value) -> Result<Value, Refusal> {
        let world = self.world();
        let prefix = text(request, "logStreamNamePrefix");
        let names = request["logStreamNames"].as_array();
        let pattern = text(request, "filterPattern").trim_matches('"');
        let chosen = |name: &str| match names {
            Some(names) => names.iter().any(|known| known == name),
            None => name.starts_with(prefix),
        };
        let group = world.logs.group(request)?;
        let mut events: Vec<(&String, &Event)> = group
            .iter()
            .filter(|(name, _)| chosen(name))
            .flat_map(|(name, stream)| stream.events.iter().map(move |event| (name, event)))
            .filter(|(_, event)| in_time(event, request) && event.message.contains(pattern))
            .collect();
        events.sort_by_key(|(_, event)| event.id);
        let after: usize = match request["nextToken"].as_str() {
            None => 0,
            Some(token) => token.parse().map_err(|_| invalid("The specified nextToken is invalid."))?,
        };
        events.retain(|(_, event)| event.id > after);
        let limit = limit(request, PAGE);
        let page: Vec<_> = events
            .iter()
            .take(limit)
            .map(|(name, event)| {
                json!({
                    "logStreamName": name,
                    "timestamp": event.at_ms,
                    "message": event.message,
                    "ingestionTime": event.at_ms,
                    "eventId": format!("{:056}", event.id),
                })
            })
            .collect();
        let mut response = json!({"events": page, "searchedLogStreams": []});
        if events.len() > limit {
            response["nextToken"] = events[limit - 1].1.id.to_string().into();
        }
        Ok(response)
    }
}
