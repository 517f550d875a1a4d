//! The address of a server that speaks S3.

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    #[error("a server address begins with http:// or https://, as in https://minio.example.org:9000")]
    NoScheme,
    #[error("the server has no name; write it as in https://minio.example.org:9000")]
    NoHost,
    #[error("a server address cannot contain a name and password; put them into a profile of the AWS configuration")]
    HasPassword,
    #[error("a server address cannot contain spaces, `?` or `#`; write it as in https://minio.example.org:9000")]
    HasQuery,
}

/// The normalized address, without a trailing slash; `None` for an empty text, which means AWS. Some servers offer S3
/// below a path, as in `https://example.org/storage/s3`.
pub fn parse_endpoint(text: &str) -> Result<Option<String>, EndpointError> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(None);
    }
    let (scheme, rest) = text.split_once("://").ok_or(EndpointError::NoScheme)?;
    let scheme = scheme.to_ascii_lowercase();
    if !matches!(scheme.as_str(), "http" | "https") {
        return Err(EndpointError::NoScheme);
    }
    let address = rest.trim_end_matches('/');
    let server = address.split('/').next().unwrap_or_default();
    if server.contains('@') {
        return Err(EndpointError::HasPassword);
    }
    if address.contains(['?', '#']) || address.contains(char::is_whitespace) {
        return Err(EndpointError::HasQuery);
    }
    if server.is_empty() || server.starts_with(':') {
        return Err(EndpointError::NoHost);
    }
    Ok(Some(format!("{scheme}://{address}")))
}

/// An address from the user's AWS configuration that is safe to show and store: without user name and password.
pub fn without_password(address: &str) -> String {
    let Some((scheme, rest)) = address.split_once("://") else {
        return address.to_owned();
    };
    let server = rest.split('/').next().unwrap_or_default();
    match server.rsplit_once('@') {
        Some((_, host)) => format!("{scheme}://{host}{}", &rest[server.len()..]),
        None => address.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn password_in_an_address_is_dropped() {
        for (address, expected) in [
            ("http://me:secret@host:9000", "http://host:9000"),
            ("https://me@host/below/p@th", "https://host/below/p@th"),
            ("https://host/below/p@th", "https://host/below/p@th"),
            ("host", "host"),
        ] {
            assert_eq!(without_password(address), expected);
        }
    }

    #[test]
    fn server_is_stored_without_slash_or_password() {
        for (text, expected) in [
            ("", Ok(None)),
            ("  ", Ok(None)),
            (" HTTP://127.0.0.1:8333/ ", Ok(Some("http://127.0.0.1:8333"))),
            ("https://[::1]:9000", Ok(Some("https://[::1]:9000"))),
            ("https://example.org/storage/s3", Ok(Some("https://example.org/storage/s3"))),
            ("minio.example.org", Err(EndpointError::NoScheme)),
            ("s3://bucket", Err(EndpointError::NoScheme)),
            ("https://", Err(EndpointError::NoHost)),
            ("https://:9000", Err(EndpointError::NoHost)),
            ("https://me:secret@minio.example.org", Err(EndpointError::HasPassword)),
            ("https://minio.example.org?x=y", Err(EndpointError::HasQuery)),
        ] {
            let expected = expected.map(|server| server.map(str::to_owned));
            assert_eq!(parse_endpoint(text), expected, "{text:?}");
        }
    }
}
