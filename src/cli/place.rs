//! Locations on the command line: local folders and files, and prefixes in S3.

use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use anyhow::{Context, anyhow, bail};
use clap::{Args, ValueEnum};

use super::values::{parse_bucket_region, parse_profile};
use crate::aws::{Aws, AwsError, AwsErrorKind};
use crate::domain::{Credentials, EndpointError, Location, S3Access, S3Layout, S3Link, S3Place};
use crate::image::source::{ImageList, LinesSource, NamedKind, Source, WithRecords, absolute, folder_of, kind_of_name};
use crate::tasks::TaskControl;

/// Access to S3, with the defaults of the AWS CLI.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "S3")]
pub(crate) struct S3Args {
    /// AWS profile; overrides the environment
    #[arg(long, value_name = "NAME", value_parser = parse_profile)]
    profile: Option<String>,
    /// Region of the bucket [default: detected]
    #[arg(long, value_name = "REGION", value_parser = parse_bucket_region)]
    region: Option<String>,
    /// URL of an S3 server other than AWS, for example `http://127.0.0.1:9000`
    #[arg(long, value_name = "URL", value_parser = parse_endpoint)]
    endpoint_url: Option<String>,
    /// Put the bucket in the path instead of the host name [default: true for servers other than AWS]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    path_style: Option<bool>,
    /// Send unsigned requests, for public buckets
    #[arg(long, conflicts_with = "profile")]
    anonymous: bool,
    /// Pay for the requests to a requester-pays bucket
    #[arg(long)]
    requester_pays: bool,
}

impl S3Args {
    /// The access from the flags, with the defaults of the AWS CLI.
    pub(crate) fn access(&self) -> S3Access {
        self.over(S3Access::default())
    }

    pub(crate) fn is_given(&self) -> bool {
        self.profile.is_some()
            || self.region.is_some()
            || self.endpoint_url.is_some()
            || self.path_style.is_some()
            || self.anonymous
            || self.requester_pays
    }

    /// The flags for one of several locations: none for a local one if another is in S3.
    pub(crate) fn for_path(&self, path: &Path, other_is_in_s3: bool) -> &Self {
        static NONE: LazyLock<S3Args> = LazyLock::new(S3Args::default);
        if other_is_in_s3 && !is_in_s3(path) { &NONE } else { self }
    }

    /// `place` with its access overridden by the flags.
    pub(crate) fn place(&self, place: S3Place) -> Location {
        Location::S3(Box::new(S3Place { access: self.over(place.access), ..place }))
    }

    /// `access`, overridden by the flags.
    pub(crate) fn over(&self, access: S3Access) -> S3Access {
        let credentials = match &self.profile {
            Some(profile) => Credentials::Profile(profile.clone()),
            None if self.anonymous => Credentials::Anonymous,
            None => access.credentials,
        };
        S3Access {
            credentials,
            region: self.region.clone().or(access.region),
            endpoint: self.endpoint_url.clone().or(access.endpoint),
            path_style: self.path_style.or(access.path_style),
            requester_pays: self.requester_pays || access.requester_pays,
        }
    }
}

pub(crate) fn is_in_s3(path: &Path) -> bool {
    path.to_str().is_some_and(S3Link::is_address)
}

/// How a folder in S3 is listed.
#[derive(Debug, Clone, Copy, Default, Args)]
#[command(next_help_heading = "S3")]
pub(crate) struct LayoutArgs {
    /// How to list an S3 folder [default: flat]
    #[arg(long, value_name = "LAYOUT")]
    layout: Option<Layout>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Layout {
    /// Everything below the folder
    Flat,
    /// Only the folder itself
    Folder,
}

fn parse_endpoint(text: &str) -> Result<String, String> {
    let endpoint = crate::domain::parse_endpoint(text).map_err(|error| error.to_string())?;
    endpoint.ok_or_else(|| EndpointError::NoHost.to_string())
}

pub(crate) fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// # Errors
/// The address looks like S3 but is invalid, or it is not S3 and S3 flags are given.
pub(crate) fn parse_location(text: &Path, args: &S3Args) -> anyhow::Result<Location> {
    if let Some(address) = text.to_str().filter(|text| S3Link::is_address(text)) {
        let link = S3Link::parse(address)?;
        if link.endpoint.is_some()
            && link.address.prefix.is_empty()
            && kind_of_name(&link.address.bucket) != NamedKind::Other
        {
            bail!("web addresses are not supported; specify a folder, a file or s3://bucket/folder/: {address}");
        }
        return Ok(args.place(S3Place::from_link(link)));
    }
    if args.is_given() {
        bail!(
            "--profile, --region, --endpoint-url, --path-style, --anonymous and --requester-pays are for s3:// \
            only, not for: {}",
            text.display()
        );
    }
    Ok(Location::Path(text.to_owned()))
}

impl LayoutArgs {
    /// # Errors
    /// A layout was given for a source other than S3.
    pub(crate) fn apply_to(self, location: Location) -> anyhow::Result<Location> {
        let layout = match self.layout {
            None => return Ok(location),
            Some(Layout::Flat) => S3Layout::Flat,
            Some(Layout::Folder) => S3Layout::Folder,
        };
        let Location::S3(place) = location else {
            bail!("--layout is for s3:// only");
        };
        Ok(Location::S3(Box::new(S3Place { layout, ..*place })))
    }
}

/// The images at a location; `-` reads their paths from stdin.
pub(crate) fn open(location: &Location, control: &TaskControl) -> anyhow::Result<Opened> {
    match location {
        Location::Path(path) if is_stdin(path) => {
            let paths = paths_of_lines(std::io::stdin().lock()).context("Could not read the list of paths on stdin")?;
            if let Some(address) = paths.iter().find(|path| is_in_s3(path)) {
                bail!(
                    "`-` reads local paths, not S3 addresses; specify the S3 folder as the source. The list \
                     contains {}",
                    address.display()
                );
            }
            Ok(Opened { source: Arc::new(WithRecords::from_paths(paths)), root: None, place: None })
        }
        Location::Path(path) if let Some(list) = list_in(path)? => {
            let opened = open(&list.source, control)
                .with_context(|| format!("Could not open the images in {}", path.display()))?;
            Ok(Opened { source: list.over(opened.source, path), ..opened })
        }
        Location::Path(path) => {
            let source = WithRecords::open(path).with_context(|| format!("Could not open {}", path.display()))?;
            let from_root = absolute(path).ok();
            let root = from_root.and_then(|path| folder_of(&path).to_str().map(str::to_owned));
            Ok(Opened { source: LinesSource::in_place_of(Arc::new(source), control), root, place: None })
        }
        Location::S3(place) => {
            let opened = WithRecords::in_s3(&Aws::new(), place, Some(control), |source| source);
            let (source, of_s3) = opened.map_err(|error| explain(place, error))?;
            let folder = S3Place { address: of_s3.folder(), ..(**place).clone() };
            Ok(Opened {
                root: Some(folder.address.to_string()),
                place: Some(folder.on_server(source.server())),
                source: LinesSource::in_place_of(Arc::new(source), control),
            })
        }
    }
}

fn list_in(path: &Path) -> anyhow::Result<Option<ImageList>> {
    ImageList::in_file(path).with_context(|| format!("Could not open {}", path.display()))
}

/// Missing credentials are not the problem if the address is one that no credentials open.
fn explain(place: &S3Place, error: AwsError) -> anyhow::Error {
    if error.kind != AwsErrorKind::NoCredentials {
        return error.into();
    }
    let bucket = &place.address.bucket;
    let is_valid = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '.' | '-');
    match &place.access.endpoint {
        Some(server) => anyhow::Error::new(error).context(format!(
            "this address is treated as one on the S3 server {server}; other web addresses are not supported"
        )),
        None if !bucket.chars().all(is_valid) => anyhow!(
            "“{bucket}” is not a valid bucket name: AWS allows only lower-case letters, digits, dots and hyphens; check \
            the spelling"
        ),
        None => error.into(),
    }
}

pub(crate) struct Opened {
    pub(crate) source: Arc<dyn Source>,
    /// The folder that sample names are relative to; a list of paths has none.
    pub(crate) root: Option<String>,
    /// The location, if the source is in S3.
    pub(crate) place: Option<S3Place>,
}

/// One path per line. One that is not UTF-8 stays unchanged, so that the listing reports it.
fn paths_of_lines(lines: impl BufRead) -> std::io::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for line in lines.split(b'\n') {
        let line = line?;
        let line = line.strip_suffix(b"\r").unwrap_or(&line);
        if !line.is_empty() {
            paths.push(path_of_bytes(line));
        }
    }
    Ok(paths)
}

#[cfg(unix)]
fn path_of_bytes(bytes: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    PathBuf::from(std::ffi::OsStr::from_bytes(bytes))
}

#[cfg(not(unix))]
fn path_of_bytes(bytes: &[u8]) -> PathBuf {
    PathBuf::from(String::from_utf8_lossy(bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str, args: &S3Args) -> anyhow::Result<Location> {
        parse_location(Path::new(text), args)
    }

    #[test]
    fn explicit_options_override_links() {
        let args = S3Args { region: Some("eu-west-1".to_owned()), anonymous: true, ..S3Args::default() };
        let Location::S3(place) = parse("https://bucket.s3.us-east-2.amazonaws.com/a/", &args).unwrap() else {
            panic!("it is in S3");
        };
        assert_eq!(place.address.to_string(), "s3://bucket/a/");
        assert_eq!(place.access.region.as_deref(), Some("eu-west-1"));
        assert_eq!(place.access.credentials, Credentials::Anonymous);
        let error = parse("photos", &args).unwrap_err();
        assert!(error.to_string().contains("not for: photos"), "{error}");
        assert!(matches!(parse("photos", &S3Args::default()), Ok(Location::Path(_))));
    }

    #[test]
    fn only_s3_locations_have_a_layout() {
        let folder = LayoutArgs { layout: Some(Layout::Folder) };
        let listed = |text, layout: LayoutArgs| layout.apply_to(parse(text, &S3Args::default())?);
        let layout_of = |place| match place {
            Ok(Location::S3(place)) => Some(place.layout),
            _ => None,
        };
        assert_eq!(layout_of(listed("s3://bucket/a/", folder)), Some(S3Layout::Folder));
        assert_eq!(layout_of(listed("s3://bucket/a/", LayoutArgs::default())), Some(S3Layout::Flat));
        assert!(listed("photos", folder).is_err());
        assert!(listed("photos", LayoutArgs::default()).is_ok());
    }

    #[test]
    fn endpoint_is_a_url() {
        assert_eq!(parse_endpoint("http://host:9000/").unwrap(), "http://host:9000");
        for wrong in ["host:9000", "", "http://me:secret@host:9000"] {
            let error = parse_endpoint(wrong).unwrap_err();
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
