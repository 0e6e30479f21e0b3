//! Where state lies: a folder, or a bucket with a prefix. And how the library is told.

use base::Error;
use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::{BackoffConfig, ClientOptions, ObjectStore, RetryConfig};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use url::Url;

/// How often a request is tried again before it fails.
pub const RETRIES: usize = 5;
/// Milliseconds after which a request is not tried again.
pub const RETRY_MS: u64 = 20_000;
/// Milliseconds for one request with its answer: a part of [`crate::PART_BYTES`] at 0.3 MB/s.
pub const REQUEST_MS: u64 = 30_000;
/// Milliseconds for a connection to be there.
pub const CONNECT_MS: u64 = 5_000;

/// What a store needs to be told besides its URL. Credentials are none of it: those come from the environment
/// or the machine's role.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoreOptions {
    /// The address of a service that is not the provider's own: `https://minio.example.org:9000`.
    pub endpoint: Option<String>,
    /// The region of an S3 bucket; else `AWS_REGION`, else `us-east-1`.
    pub region: Option<String>,
    /// The account of an Azure container; else `AZURE_STORAGE_ACCOUNT_NAME`.
    pub account: Option<String>,
    /// Whether an endpoint without TLS is taken: for tests on one machine.
    pub allow_http: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Provider {
    S3,
    Gcs,
    Azure,
}

/// Whose buckets hold state and data, by the scheme of their URLs.
const PROVIDERS: [(&str, Provider); 3] =
    [("s3", Provider::S3), ("gs", Provider::Gcs), ("az", Provider::Azure)];

/// The schemes of URLs that name buckets.
pub fn bucket_schemes() -> impl Iterator<Item = &'static str> {
    PROVIDERS.iter().map(|(scheme, _)| *scheme)
}

impl Provider {
    fn of(scheme: &str) -> Option<Self> {
        PROVIDERS.iter().find(|(name, _)| *name == scheme).map(|(_, provider)| *provider)
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum StatePlace {
    Folder(PathBuf),
    /// The bucket or container, and the prefix of all names, without slashes at its ends.
    Bucket(Provider, String, String),
}

impl StatePlace {
    /// # Errors
    /// When it is no folder and no URL of a known kind, or holds what belongs into the environment.
    pub(crate) fn parse(text: &str) -> Result<Self, Error> {
        if !text.contains("://") {
            if text.is_empty() {
                return Err(Error::input("the place of the state is empty; name a folder or a URL"));
            }
            return Ok(Self::Folder(PathBuf::from(text)));
        }
        let url = url_of(text, "state")?;
        let provider = match url.scheme() {
            "file" => {
                let wrong =
                    |()| Error::input(format!("{text}: no folder of this machine; write file:///PATH"));
                return url.to_file_path().map(Self::Folder).map_err(wrong);
            }
            scheme => Provider::of(scheme).ok_or_else(|| {
                Error::input(format!(
                    "{text}: state lies in a folder (PATH, file:///PATH) or in s3://BUCKET/PREFIX, \
                     gs://BUCKET/PREFIX or az://CONTAINER/PREFIX"
                ))
            })?,
        };
        let bucket = bucket_name(&url, text)?;
        let prefix = url.path().trim_matches('/');
        if !prefix.is_empty() && !crate::name::is_name(prefix) {
            return Err(Error::input(format!("{text}: {}", crate::name::RULE)));
        }
        Ok(Self::Bucket(provider, bucket, prefix.to_owned()))
    }
}

/// The URL of the `noun`, which holds a place and nothing else.
fn url_of(text: &str, noun: &str) -> Result<Url, Error> {
    let scheme = text.split("://").next().unwrap_or_default();
    let url = Url::parse(text)
        .map_err(|e| Error::input(format!("the {scheme}:// URL of the {noun} is none: {e}")))?;
    if !url.username().is_empty() || url.password().is_some() || url.query().is_some() {
        return Err(with_credentials(scheme, noun));
    }
    if url.fragment().is_some() || url.port().is_some() {
        return Err(Error::input(format!(
            "{text}: a place of {noun} has no port and no fragment; give the address of a service as its \
             endpoint"
        )));
    }
    Ok(url)
}

fn with_credentials(scheme: &str, noun: &str) -> Error {
    Error::input(format!(
        "the {scheme}:// URL of the {noun} holds a name, a password or a query: credentials come from the \
         environment or the machine's role, and everything else from options; remove them"
    ))
}

fn bucket_name(url: &Url, text: &str) -> Result<String, Error> {
    let name = url.host_str().filter(|host| host.len() >= 3).map(str::to_owned);
    name.ok_or_else(|| {
        Error::input(format!("{text}: a bucket or container has a name of at least three letters"))
    })
}

/// Where inputs lie: a bucket, and the key of an object, of a folder (with a slash behind it), or a pattern.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct InputPlace {
    pub provider: Provider,
    pub bucket: String,
    pub key: String,
}

impl InputPlace {
    /// The key stands as it is: others chose it, and may have put anything into it. `?` is of a pattern,
    /// where nothing behind it looks like a query.
    ///
    /// # Errors
    /// When it is no URL of a bucket, or holds what belongs into the environment.
    pub(crate) fn parse(text: &str) -> Result<Self, Error> {
        let (scheme, rest) = text.split_once("://").unwrap_or(("", text));
        let (_, key) = rest.split_once('/').unwrap_or((rest, ""));
        let provider = Provider::of(scheme).ok_or_else(|| {
            Error::input(format!(
                "the {scheme}:// URL of the data is of no kind that is known here: data lie in files of this \
                 machine (PATH), or in s3://BUCKET/.., gs://BUCKET/.. or az://CONTAINER/.."
            ))
        })?;
        if key.split_once('?').is_some_and(|(_, query)| query.contains(['=', '&'])) {
            return Err(with_credentials(scheme, "data"));
        }
        let url = url_of(&text[..text.len() - key.len()], "data")?;
        let bucket = bucket_name(&url, text)?;
        if key.starts_with('/') || key.contains("//") {
            return Err(Error::input(format!("{text}: two slashes with nothing between them; remove one")));
        }
        Ok(Self { provider, bucket, key: key.to_owned() })
    }
}

/// The library's store of a bucket; nothing is sent yet.
///
/// # Errors
/// When the environment or the options do not do.
pub(crate) fn bucket(
    provider: Provider,
    name: &str,
    options: &StoreOptions,
) -> Result<Arc<dyn ObjectStore>, Error> {
    let wrong = |e: object_store::Error| {
        Error::input(format!(
            "the store of {name} cannot be opened: {e}; check the environment's settings of its provider"
        ))
    };
    let retry = RetryConfig {
        backoff: BackoffConfig::default(),
        max_retries: RETRIES,
        retry_timeout: Duration::from_millis(RETRY_MS),
    };
    let client = ClientOptions::new()
        .with_timeout(Duration::from_millis(REQUEST_MS))
        .with_connect_timeout(Duration::from_millis(CONNECT_MS))
        .with_allow_http(options.allow_http);
    let StoreOptions { endpoint, region, account, .. } = options;
    if endpoint.as_ref().is_some_and(|endpoint| endpoint.contains(['@', '?'])) {
        return Err(Error::input(
            "the endpoint of the store holds a name, a password or a query: credentials come from the \
             environment or the machine's role; remove them",
        ));
    }
    if let Some(plain) = endpoint.as_ref().filter(|e| e.starts_with("http://") && !options.allow_http) {
        return Err(Error::input(format!(
            "{plain} is without TLS: take https, or allow http where the service is on this machine"
        )));
    }
    Ok(match provider {
        Provider::S3 => {
            let builder = AmazonS3Builder::from_env().with_bucket_name(name).with_retry(retry);
            let builder = builder.with_client_options(client);
            let builder = region.iter().fold(builder, |builder, region| builder.with_region(region));
            let builder = endpoint.iter().fold(builder, |builder, endpoint| builder.with_endpoint(endpoint));
            Arc::new(builder.build().map_err(wrong)?)
        }
        Provider::Gcs => {
            let builder = GoogleCloudStorageBuilder::from_env().with_bucket_name(name).with_retry(retry);
            let builder = builder.with_client_options(client);
            let builder = endpoint.iter().fold(builder, |builder, endpoint| builder.with_base_url(endpoint));
            Arc::new(builder.build().map_err(wrong)?)
        }
        Provider::Azure => {
            let builder = MicrosoftAzureBuilder::from_env().with_container_name(name).with_retry(retry);
            let builder = builder.with_client_options(client);
            let builder = account.iter().fold(builder, |builder, account| builder.with_account(account));
            let builder =
                endpoint.iter().fold(builder, |builder, endpoint| builder.with_endpoint(endpoint.clone()));
            Arc::new(builder.build().map_err(wrong)?)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_folders_and_buckets() {
        let bucket = |p, b: &str, x: &str| StatePlace::Bucket(p, b.into(), x.into());
        for (text, place) in [
            ("state", StatePlace::Folder("state".into())),
            ("/a/b c", StatePlace::Folder("/a/b c".into())),
            ("file:///a/b%20c", StatePlace::Folder("/a/b c".into())),
            ("s3://bucket/a/b/", bucket(Provider::S3, "bucket", "a/b")),
            ("gs://bucket", bucket(Provider::Gcs, "bucket", "")),
            ("az://container/x", bucket(Provider::Azure, "container", "x")),
        ] {
            assert_eq!(StatePlace::parse(text).unwrap(), place, "{text}");
        }
        for (text, why) in [
            ("", "is empty"),
            ("http://a/b", "state lies in a folder"),
            ("s3://ab/x", "at least three letters"),
            ("s3:///x", "at least three letters"),
            ("s3://bucket/a//b", "names are"),
            ("s3://bucket/A b", "names are"),
            ("s3://bucket:80/a", "no port"),
            ("s3://bucket/a#b", "no fragment"),
        ] {
            let error = StatePlace::parse(text).unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    #[test]
    fn credentials_in_a_url_are_refused_and_not_repeated() {
        for text in ["s3://KEY:SECRET@bucket/x", "az://container/x?sig=SECRET", "s3://SECRET@bucket"] {
            let error = StatePlace::parse(text).unwrap_err().to_string();
            assert!(error.contains("from the environment") && !error.contains("SECRET"), "{error}");
        }
    }

    #[test]
    fn an_endpoint_without_tls_has_to_be_allowed() {
        let options = StoreOptions { endpoint: Some("http://127.0.0.1:1".into()), ..StoreOptions::default() };
        let error = bucket(Provider::S3, "bucket", &options).err().unwrap().to_string();
        assert!(error.starts_with("http://127.0.0.1:1 is without TLS"), "{error}");
        assert!(bucket(Provider::S3, "bucket", &StoreOptions { allow_http: true, ..options }).is_ok());
        let options =
            StoreOptions { endpoint: Some("https://me:SECRET@a.b".into()), ..StoreOptions::default() };
        let error = bucket(Provider::S3, "bucket", &options).err().unwrap().to_string();
        assert!(error.contains("remove them") && !error.contains("SECRET"), "{error}");
    }

    #[test]
    fn places_of_inputs_are_buckets_with_any_key() {
        let place = |provider, bucket: &str, key: &str| InputPlace {
            provider,
            bucket: bucket.into(),
            key: key.into(),
        };
        for (text, wanted) in [
            ("s3://bucket/a/b/", place(Provider::S3, "bucket", "a/b/")),
            ("s3://bucket", place(Provider::S3, "bucket", "")),
            ("gs://bucket/day=3/a b%20#1.csv", place(Provider::Gcs, "bucket", "day=3/a b%20#1.csv")),
            ("az://container/x-?.csv", place(Provider::Azure, "container", "x-?.csv")),
        ] {
            assert_eq!(InputPlace::parse(text).unwrap(), wanted, "{text}");
        }
        for (text, why) in [
            ("https://a.b/x?token=SECRET", "the https:// URL of the data is of no kind"),
            ("s3://KEY:SECRET@bucket/x", "from the environment"),
            ("s3://SECRET@bucket", "from the environment"),
            ("s3://bucket?sig=SECRET", "from the environment"),
            ("az://container/x?sig=SECRET", "from the environment"),
            ("s3://ab/x", "at least three letters"),
            ("s3://bucket:80/a", "no port"),
            ("s3://bucket//a", "two slashes"),
            ("s3://bucket/a//b", "two slashes"),
        ] {
            let error = InputPlace::parse(text).unwrap_err().to_string();
            assert!(error.contains(why) && !error.contains("SECRET"), "{text}: {error}");
        }
    }
}
