//! The price table in the configuration folder: TOML that people can edit.

use std::path::Path;

use toml_edit::{DocumentMut, Value};

use crate::local_file;
use crate::sagemaker::JobError;
use crate::sagemaker::spec::transform::{InstanceType, Price, PriceChange, PriceTable};

/// The header of a new table.
const HEADER: &str = r#"# Prices of instances in USD per hour, for Spotcheck's estimates. Spotcheck looks up no prices.
# Each entry has a source and a date. Of two entries for the same type and region, the last one counts.
#
# [[price]]
# instance_type = "ml.m5.xlarge"
# region = "eu-west-1"        # optional; without it, for all regions that have no entry of their own
# usd_per_hour = 1.0
# source = "https://aws.amazon.com/sagemaker/pricing/"
# date = "2026-11-21"
"#;

/// Reads the table; an empty one if there is no file.
///
/// # Errors
/// The file cannot be read, or an entry is invalid: the message has its line.
pub fn read_prices(path: &Path) -> Result<PriceTable, JobError> {
    let text = local_file::if_there(std::fs::read_to_string(path)).map_err(|error| unreadable(path, error))?;
    let Some(text) = text else {
        return Ok(PriceTable::default());
    };
    let table: PriceTable = toml::from_str(&text).map_err(|error| unreadable(path, error))?;
    for price in &table.prices {
        if let Some(problem) = problem_of(price) {
            return Err(unreadable(path, format!("the entry for {}: {problem}", price.instance_type)));
        }
    }
    Ok(table)
}

/// Appends a price to the table, creating the file if necessary. Everything in it stays, including comments.
///
/// # Errors
/// The price is invalid, or the table cannot be read or written.
pub fn add_price(path: &Path, price: &Price) -> Result<PriceTable, JobError> {
    let cannot = |why: &dyn std::fmt::Display| JobError::local("Could not add the price to the table", path, why);
    if let Some(problem) = problem_of(price) {
        return Err(cannot(&problem));
    }
    let mut table = read_prices(path)?;
    let entry = PriceTable { prices: vec![price.clone()] };
    let entry = toml::to_string(&entry).map_err(|error| cannot(&error))?;
    table.prices.push(price.clone());
    let text = match local_file::if_there(std::fs::read_to_string(path)).map_err(|error| cannot(&error))? {
        Some(text) => format!("{text}\n\n{entry}"),
        None => format!("{HEADER}\n{entry}"),
    };
    if !is_text_of(&table, &text) {
        return Err(cannot(&"its entries have an unexpected format; edit the file"));
    }
    local_file::replace(path, &text).map_err(|error| cannot(&error))?;
    Ok(table)
}

/// Replaces the amount, source and date of a price. The rest of the file stays, including comments.
///
/// # Errors
/// The price is invalid, it no longer exists, its entry is written in a way that only a person should change, or the
/// file cannot be read or written.
pub fn change_price(path: &Path, change: &PriceChange) -> Result<PriceTable, JobError> {
    let cannot = |why: &dyn std::fmt::Display| JobError::local("Could not change the price in the table", path, why);
    if let Some(problem) = problem_of(&change.to) {
        return Err(cannot(&problem));
    }
    let mut table = read_prices(path)?;
    // Of two equal entries, the last one counts.
    let place = table.prices.iter().rposition(|price| *price == change.from);
    let place = place.ok_or_else(|| cannot(&"it changed in the file; check it again"))?;
    table.prices[place] = change.to.clone();
    let text = std::fs::read_to_string(path).map_err(|error| cannot(&error))?;
    let changed = with_entry(&text, place, &change.to).filter(|changed| is_text_of(&table, changed));
    let changed = changed.ok_or_else(|| cannot(&"its entry has an unexpected format; edit the file"))?;
    local_file::replace(path, &changed).map_err(|error| cannot(&error))?;
    Ok(table)
}

/// Whether a text to be written is read as the intended table; otherwise nothing is written.
fn is_text_of(table: &PriceTable, text: &str) -> bool {
    toml::from_str(text).ok().as_ref() == Some(table)
}

/// The text of the table with one entry changed, counted from 0; `None` if entries are not separate tables.
fn with_entry(text: &str, entry: usize, price: &Price) -> Option<String> {
    let mut document: DocumentMut = text.parse().ok()?;
    let entry = document.get_mut("price")?.as_array_of_tables_mut()?.get_mut(entry)?;
    for (key, mut to) in [
        ("usd_per_hour", Value::from(price.usd_per_hour)),
        ("source", Value::from(&price.source)),
        ("date", Value::from(&price.date)),
    ] {
        let value = entry.get_mut(key)?.as_value_mut()?;
        // The spaces before it, and the comment after it.
        value.decor().clone_into(to.decor_mut());
        *value = to;
    }
    let changed = document.to_string().replace("\r\n", "\n");
    // Windows editors write CRLF, which toml_edit does not keep.
    let is_of_windows = text.contains("\r\n");
    Some(if is_of_windows { changed.replace('\n', "\r\n") } else { changed })
}

fn unreadable(path: &Path, why: impl std::fmt::Display) -> JobError {
    JobError::local("Could not read the price table; correct it or move it away", path, why)
}

fn problem_of(price: &Price) -> Option<&'static str> {
    if InstanceType::parse(&price.instance_type).is_none() {
        return Some("the instance type must be like ml.m5.xlarge");
    }
    if !price.usd_per_hour.is_finite() || price.usd_per_hour <= 0.0 {
        return Some("the price must be a positive number of dollars");
    }
    if price.source.trim().is_empty() {
        return Some("the price needs a source");
    }
    (!is_date(&price.date)).then_some("the date must be like 2026-11-21")
}

fn is_date(text: &str) -> bool {
    text.parse::<jiff::civil::Date>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn price(usd_per_hour: f64) -> Price {
        Price {
            instance_type: "ml.m5.xlarge".to_owned(),
            region: Some("eu-west-1".to_owned()),
            usd_per_hour,
            source: "an invoice".to_owned(),
            date: "2026-11-21".to_owned(),
        }
    }

    #[test]
    fn added_price_keeps_the_rest_of_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config/prices.toml");
        assert_eq!(read_prices(&path).unwrap(), PriceTable::default());
        add_price(&path, &price(0.25)).unwrap();
        let mut text = std::fs::read_to_string(&path).unwrap();
        text.push_str("# mine\n");
        std::fs::write(&path, text).unwrap();
        let table = add_price(&path, &price(0.5)).unwrap();
        assert_eq!(read_prices(&path).unwrap(), table);
        let found = table.find("ml.m5.xlarge", Some("eu-west-1")).unwrap();
        assert_eq!(found.usd_per_hour, 0.5);
        assert_eq!(table.find("ml.m5.xlarge", Some("us-east-1")), None);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.starts_with(HEADER) && text.contains("# mine\n"), "{text}");
    }

    #[test]
    fn changed_price_keeps_the_rest_of_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("prices.toml");
        for usd in [0.25, 0.5, 0.75] {
            add_price(&path, &price(usd)).unwrap();
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let text = text.replace("usd_per_hour = 0.5\n", "# of the second\n  usd_per_hour=0.5 # a guess\n");
        let text = text.replace('\n', "\r\n");
        std::fs::write(&path, &text).unwrap();
        let change = PriceChange {
            from: price(0.5),
            to: Price { source: "a \"quoted\" \\ note".to_owned(), date: "2026-11-22".to_owned(), ..price(2.0) },
        };
        let table = change_price(&path, &change).unwrap();
        assert_eq!(table.prices, [price(0.25), change.to.clone(), price(0.75)]);
        assert_eq!(read_prices(&path).unwrap(), table);
        let changed = std::fs::read_to_string(&path).unwrap();
        assert!(changed.lines().count() == changed.matches("\r\n").count(), "{changed:?}");
        let changed = changed.replace("\r\n", "\n");
        assert!(
            changed.starts_with(HEADER) && changed.contains("# of the second\n  usd_per_hour=2.0 # a guess\n"),
            "{changed}"
        );

        // The entry was removed.
        let error = change_price(&path, &change).unwrap_err().to_string();
        assert!(error.contains("it changed in the file"), "{error}");
        let no_price = PriceChange { from: price(0.25), to: price(-1.0) };
        let error = change_price(&path, &no_price).unwrap_err().to_string();
        assert!(error.contains("positive number"), "{error}");
        // Only a person should touch an entry written like this.
        let inline = "price = [{instance_type = \"ml.m5.xlarge\", region = \"eu-west-1\", usd_per_hour = 0.25, source \
            = \"an invoice\", date = \"2026-11-21\"}]\n\
            ";
        std::fs::write(&path, inline).unwrap();
        let change = PriceChange { from: price(0.25), to: price(1.0) };
        for error in [change_price(&path, &change).unwrap_err(), add_price(&path, &price(1.0)).unwrap_err()] {
            assert!(error.to_string().contains("edit the file"), "{error}");
        }
        assert_eq!(std::fs::read_to_string(&path).unwrap(), inline);
    }

    #[test]
    fn invalid_price_table_is_refused_unchanged() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("prices.toml");
        let entry = |change: &str| {
            let good = "instance_type = \"ml.m5.xlarge\"\nusd_per_hour = 1.0\nsource = \"me\"\ndate = \"2026-11-21\"\n";
            let key = change.split(' ').next().unwrap();
            let kept = good.lines().filter(|line| !line.starts_with(key));
            let lines: Vec<&str> = kept.chain([change]).collect();
            format!("[[price]]\n{}\n", lines.join("\n"))
        };
        for (change, said) in [
            ("usd_per_hour = -1.0", "positive number"),
            ("usd_per_hour = nan", "positive number"),
            ("date = \"yesterday\"", "2026-11-21"),
            ("source = \"\"", "needs a source"),
            ("instance_type = \"m5\"", "ml.m5.xlarge"),
            ("color = \"red\"", "color"),
        ] {
            let text = entry(change);
            std::fs::write(&path, &text).unwrap();
            let error = read_prices(&path).unwrap_err().to_string();
            assert!(error.contains(said) && error.contains("prices.toml"), "{change}: {error}");
            assert!(add_price(&path, &price(1.0)).is_err());
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
    }
}
