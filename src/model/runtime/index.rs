//! Downloads wheels from a Python package index through its simple API, as JSON or HTML.
//!
//! Source: <https://packaging.python.org/en/latest/specifications/simple-repository-api/>

use std::path::Path;

use percent_encoding::percent_decode_str;
use serde::Deserialize;
use url::Url;

use super::error::RuntimeError;
use super::packages::{Pin, RuntimePackage};
use super::pip::PipSettings;
use crate::domain::ModelFile;
use crate::model::download::{Access, DownloadError, DownloadPolicy, Login, Page, Wanted, fetch_page, is_intact};
use crate::tasks::TaskControl;

const JSON: &str = "application/vnd.pypi.simple.v1+json";
const ACCEPT: &str = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1";

/// Maximum size of a project's page; onnxruntime's has 0.6 MB.
const MAX_PAGE_BYTES: usize = 64 << 20;

/// Downloads the pinned wheel of `package` to `target`, from the index in pip's settings or else from `default`. Resumes
/// an unfinished download.
pub(super) fn download(
    package: RuntimePackage,
    pin: &Pin,
    default: Option<&str>,
    target: &Path,
    control: &TaskControl,
) -> Result<(), RuntimeError> {
    let settings = PipSettings::read();
    let mut file = ModelFile {
        name: pin.wheel.to_owned(),
        bytes: pin.wheel_bytes,
        sha256: pin.wheel_sha256.to_owned(),
        urls: Vec::new(),
    };
    if target.exists() && is_intact(target, &file, control).map_err(|error| failed(package, error))? {
        return Ok(());
    }
    let mut first_failure = None;
    for index in settings.indexes(default) {
        let (index, login) = without_login(index);
        let access = Access { proxy: settings.proxy(), certificates: settings.certificates(), login };
        let policy = DownloadPolicy { access, ..DownloadPolicy::default() };
        let wanted_from = |url: Url, file: &mut ModelFile| {
            file.urls = vec![url.into()];
            let wanted = Wanted { title: package.name(), file, target };
            wanted.download(&policy, control).map_err(|error| failed(package, error))
        };
        match find(package, pin, &index, &policy, control).and_then(|url| wanted_from(url, &mut file)) {
            Err(error @ (RuntimeError::Index { .. } | RuntimeError::NotInIndex { .. })) => {
                log::warn!("{error}");
                first_failure.get_or_insert(error);
            }
            ended => return ended,
        }
    }
    Err(first_failure.unwrap_or(RuntimeError::NoIndex { package }))
}

fn failed(package: RuntimePackage, error: DownloadError) -> RuntimeError {
    match error {
        DownloadError::Cancelled(_) => RuntimeError::Cancelled,
        DownloadError::DiskFull { path, .. } => RuntimeError::DiskFull { folder: path },
        source => RuntimeError::Index { package, source },
    }
}

/// The address without a user name and password, and these.
fn without_login(index: &str) -> (String, Option<Login>) {
    let Ok(mut url) = Url::parse(index) else {
        return (index.to_owned(), None);
    };
    let decode = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
    let login = (!url.username().is_empty()).then(|| Login {
        host: url.host_str().unwrap_or_default().to_owned(),
        user: decode(url.username()),
        password: decode(url.password().unwrap_or_default()),
    });
    // Fails only for addresses without a host.
    let _ = url.set_username("").and_then(|()| url.set_password(None));
    (url.into(), login)
}

/// The address of the pinned wheel on the project's page.
fn find(
    package: RuntimePackage,
    pin: &Pin,
    index: &str,
    policy: &DownloadPolicy,
    control: &TaskControl,
) -> Result<Url, RuntimeError> {
    let address = format!("{}/{}/", index.trim_end_matches('/'), package.project());
    let page = fetch_page(&address, ACCEPT, MAX_PAGE_BYTES, policy, control).map_err(|error| failed(package, error))?;
    let not_there = |reason: String| RuntimeError::NotInIndex { package, reason };
    let links = links(&page).map_err(|reason| not_there(format!("{address} {reason}")))?;
    let link = links.into_iter().find(|link| link.file_name == pin.wheel);
    let link = link.ok_or_else(|| not_there(format!("{address} does not list {}", pin.wheel)))?;
    match link.sha256 {
        Some(listed) if listed != pin.wheel_sha256 => Err(RuntimeError::WrongHash {
            package,
            reason: format!("{address} lists {listed} instead of {}", pin.wheel_sha256),
        }),
        _ => Ok(link.url),
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Link {
    file_name: String,
    url: Url,
    /// Lowercase hexadecimal; some mirrors do not list it.
    sha256: Option<String>,
}

/// The files on a project's page. The error completes “the page …”.
fn links(page: &Page) -> Result<Vec<Link>, String> {
    let base = Url::parse(&page.url).map_err(|error| format!("redirects to an invalid address ({error})"))?;
    if page.content_type.starts_with(JSON) {
        return links_in_json(&page.body, &base)
            .map_err(|error| format!("sent JSON that is not a file list ({error})"));
    }
    let html = String::from_utf8_lossy(&page.body);
    let links: Vec<Link> = hrefs(&html).filter_map(|href| link_from_href(&href, &base)).collect();
    if links.iter().any(|link| Path::new(&link.file_name).extension() == Some("whl".as_ref())) {
        return Ok(links);
    }
    Err("sent a web page that lists no wheels; if this network has a login page, open it first".to_owned())
}

fn links_in_json(body: &[u8], base: &Url) -> serde_json::Result<Vec<Link>> {
    #[derive(Deserialize)]
    struct Project {
        files: Vec<File>,
    }
    #[derive(Deserialize)]
    struct File {
        filename: String,
        url: String,
        #[serde(default)]
        hashes: Hashes,
    }
    #[derive(Deserialize, Default)]
    struct Hashes {
        sha256: Option<String>,
    }
    let project: Project = serde_json::from_slice(body)?;
    let link = |file: File| {
        Some(Link { file_name: file.filename, url: base.join(&file.url).ok()?, sha256: file.hashes.sha256 })
    };
    Ok(project.files.into_iter().filter_map(link).collect())
}

/// The values of all `href` attributes; the simple API allows no others to matter.
fn hrefs(html: &str) -> impl Iterator<Item = String> {
    html.split("href=").skip(1).filter_map(|rest| {
        let quote = rest.chars().next().filter(|quote| ['"', '\''].contains(quote))?;
        let (value, _) = rest[1..].split_once(quote)?;
        Some(value.replace("&amp;", "&"))
    })
}

fn link_from_href(href: &str, base: &Url) -> Option<Link> {
    let mut url = base.join(href).ok()?;
    let sha256 = url.fragment().and_then(|fragment| fragment.strip_prefix("sha256=")).map(str::to_owned);
    url.set_fragment(None);
    let file_name = url.path_segments()?.next_back()?;
    let file_name = percent_decode_str(file_name).decode_utf8_lossy().into_owned();
    Some(Link { file_name, url, sha256 })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(content_type: &str, body: &str) -> Page {
        Page {
            url: "https://mirror.example/team/simple/onnxruntime/".to_owned(),
            content_type: content_type.to_owned(),
            body: body.as_bytes().to_vec(),
        }
    }

    fn link(url: &str, sha256: Option<&str>) -> Link {
        Link {
            file_name: "a-1-py3-none-any.whl".to_owned(),
            url: url.parse().unwrap(),
            sha256: sha256.map(str::to_owned),
        }
    }

    #[test]
    fn html_pages_may_have_relative_links_and_no_hashes() {
        let body = "<a href=\"../../files/a-1-py3-none-any.whl#sha256=ab\" data-requires-python=\"&gt;=3\">a</a>\
                    <a href='https://cdn.example/a-1-py3-none-any.whl?x=1&amp;y=2'>a</a>";
        let expected = [
            link("https://mirror.example/team/files/a-1-py3-none-any.whl", Some("ab")),
            link("https://cdn.example/a-1-py3-none-any.whl?x=1&y=2", None),
        ];
        assert_eq!(links(&page("text/html; charset=utf-8", body)).unwrap(), expected);
    }

    #[test]
    fn json_pages_are_read() {
        let body = r#"{"meta": {"api-version": "1.4"}, "files": [
            {"filename": "a-1-py3-none-any.whl", "url": "a-1-py3-none-any.whl", "hashes": {"sha256": "ab"}, "size": 3},
            {"filename": "a-1-py3-none-any.whl", "url": "https://cdn.example/x", "hashes": {"md5": "0"}}
        ]}"#;
        let expected = [
            link("https://mirror.example/team/simple/onnxruntime/a-1-py3-none-any.whl", Some("ab")),
            link("https://cdn.example/x", None),
        ];
        assert_eq!(links(&page(JSON, body)).unwrap(), expected);
    }

    #[test]
    fn other_pages_are_no_index() {
        assert!(links(&page("text/html", "<a href='/login'>Sign in</a>")).is_err());
        assert!(links(&page(JSON, "[]")).is_err());
    }

    #[test]
    fn login_is_separated_from_the_address() {
        let (index, login) = without_login("https://ann:p%40ss@mirror.example/simple");
        let login = login.unwrap();
        assert_eq!(index, "https://mirror.example/simple");
        assert_eq!(
            (login.host.as_str(), login.user.as_str(), login.password.as_str()),
            ("mirror.example", "ann", "p@ss")
        );
        assert_eq!(without_login("https://mirror.example/simple").1, None);
    }
}
