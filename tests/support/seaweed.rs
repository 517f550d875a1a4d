//! A real S3 server for the tests: SeaweedFS on this computer's loopback, in a temporary folder, shared by all tests of
//! a program.
//!
//! Objects are uploaded by plain unsigned requests; the server requires signatures only for reading. So the program
//! under test is not involved in the setup of a test.

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::http::Connection;

/// Longer than its start takes on a busy computer; a normal start takes 3 s.
const PATIENCE: Duration = Duration::from_secs(90);
/// The interval between two checks whether it is ready.
const POLL: Duration = Duration::from_millis(20);
/// Another program may take a port between our choice and the server's start.
const ATTEMPTS: usize = 4;
const UPLOADERS: usize = 8;
/// The environment variable with a running server for the processes of the tests.
const LENT: &str = "SPOTCHECK_TEST_SEAWEED";
/// Encodes all but RFC 3986's unreserved characters and the `/` between the parts of a key.
pub(crate) const KEY: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');

/// A user and its permissions. The secrets look real, so that a test can search for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Login {
    pub(crate) profile: &'static str,
    pub(crate) access_key: &'static str,
    pub(crate) secret_key: &'static str,
    pub(crate) actions: &'static [&'static str],
}

/// Has all permissions.
pub(crate) const ADMIN: Login = Login {
    profile: "admin",
    access_key: "AKIAADMINADMIN000001",
    secret_key: "s3cr3t/Of+The/Admin+qD8cJY1v2bXw5hTn7pRk",
    actions: &["Admin", "Read", "Write", "List", "Tagging"],
};
/// Has permission to list and read everything.
pub(crate) const READER: Login = Login {
    profile: "reader",
    access_key: "AKIAREADERREADER0001",
    secret_key: "s3cr3t/Of+The/Reader+mZ4kLw9e6uGy3fVs1aQ",
    actions: &["Read", "List"],
};
/// Has permission to read objects whose keys it knows, but not to list.
pub(crate) const BLIND: Login = Login {
    profile: "blind",
    access_key: "AKIABLINDBLIND000001",
    secret_key: "s3cr3t/Of+The/Blind+xN7tHb2o5jCr8dEi4gPu",
    actions: &["Read"],
};
/// Unknown to the server.
pub(crate) const STRANGER: Login = Login {
    profile: "stranger",
    access_key: "AKIASTRANGER00000001",
    secret_key: "s3cr3t/Of+The/Stranger+yK1wMz6q9aUv3sBd",
    actions: &[],
};
/// The admin's name with another user's secret.
pub(crate) const IMPOSTOR: Login =
    Login { profile: "impostor", secret_key: "s3cr3t/Of+The/Impostor+rF5nCx8e2iTg7lQo", ..ADMIN };
pub(crate) const LOGINS: [Login; 5] = [ADMIN, READER, BLIND, STRANGER, IMPOSTOR];

/// A profile that assumes a role as the admin: its credentials come from STS, with a session token.
pub(crate) const ROLE_PROFILE: &str = "viewer";
const ROLE: &str = "arn:aws:iam::000000000000:role/viewer";

/// The prefix of public bucket names, which can be listed and read unsigned.
const PUBLIC: &str = "public-";

/// Ends the server and removes its files when the test program ends for any reason, which closes the pipe to standard
/// input. `$1` is the folder, the rest is the server's command. Its sockets are always in `/tmp`.
const WATCHDOG: &str = r#"
trap '' HUP INT TERM
folder=$1
shift
exec 3<&0
"$@" >"$folder/weed.log" 2>&1 </dev/null 3<&- &
server=$!
{ read -r _ <&3; kill -9 "$server"; } &
watcher=$!
exec 3<&-
wait "$server"
status=$?
kill -9 "$watcher"
[ "$status" = 137 ] && rm -rf "$folder"
for port in $GRPC_PORTS; do rm -f /tmp/seaweedfs-*-grpc-"$port".sock; done
"#;

/// The running server.
#[derive(Debug)]
pub(crate) struct Seaweed {
    s3: SocketAddr,
    filer: SocketAddr,
    folder: PathBuf,
    /// Held as long as the program that started it runs.
    _lifeline: Option<ChildStdin>,
}

/// A bucket of one test.
#[derive(Debug, Clone)]
pub(crate) struct Bucket {
    pub(crate) name: String,
    server: &'static Seaweed,
}

impl Seaweed {
    /// The server of this test program, started at the first call.
    pub(crate) fn shared() -> &'static Self {
        static SERVER: LazyLock<Seaweed> = LazyLock::new(|| Seaweed::inherited().unwrap_or_else(Seaweed::start));
        &SERVER
    }

    /// Lets tests in a separate process use this server.
    pub(crate) fn lend(&self, command: &mut Command) {
        let lent = format!("{} {} {}", self.s3, self.filer, self.folder.display());
        command.env(LENT, lent);
    }

    /// The server of the process that started this one.
    fn inherited() -> Option<Self> {
        let lent = std::env::var(LENT).ok()?;
        let mut parts = lent.splitn(3, ' ');
        Some(Self {
            s3: parts.next()?.parse().ok()?,
            filer: parts.next()?.parse().ok()?,
            folder: PathBuf::from(parts.next()?),
            _lifeline: None,
        })
    }

    /// `127.0.0.1:PORT` of its S3 API.
    pub(crate) fn address(&self) -> SocketAddr {
        self.s3
    }

    /// The URL for `AWS_ENDPOINT_URL_S3` and custom endpoints.
    pub(crate) fn endpoint(&self) -> String {
        format!("http://{}", self.s3)
    }

    /// A new, empty bucket; its name starts with `name`.
    pub(crate) fn bucket(&'static self, name: &str) -> Bucket {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        // Other processes of the same tests may use the same server.
        self.bucket_of_one_test(&format!("{name}-{}-{number}", std::process::id()))
    }

    /// A new, empty bucket of exactly this name, which no other test uses.
    pub(crate) fn bucket_of_one_test(&'static self, name: &str) -> Bucket {
        let bucket = Bucket { name: name.to_owned(), server: self };
        let mut filer = Connection::open(self.filer).unwrap();
        must(&mut filer, "POST", &format!("/buckets/{}/", bucket.name), &[]);
        bucket
    }

    /// A new, empty bucket that can be listed and read unsigned.
    pub(crate) fn public_bucket(&'static self, name: &str) -> Bucket {
        self.bucket(&format!("{PUBLIC}{name}"))
    }

    /// A `~/.aws/config` with a profile for each [`Login`], and the region.
    pub(crate) fn aws_config(&self) -> PathBuf {
        self.folder.join("aws-config")
    }

    /// A server for one test.
    pub(crate) fn start() -> Self {
        let weed = weed();
        for _ in 1..ATTEMPTS {
            if let Ok(server) = Self::try_start(&weed) {
                return server;
            }
        }
        match Self::try_start(&weed) {
            Ok(server) => server,
            Err(log) => panic!("SeaweedFS ended immediately, {ATTEMPTS} times:\n{log}"),
        }
    }

    /// The error is the log of a server that ended before it was ready.
    fn try_start(weed: &Path) -> Result<Self, String> {
        let folder = tempfile::Builder::new().prefix("spotcheck-seaweed-").tempdir().unwrap().keep();
        write_config(&folder);
        let [master, master_grpc, volume, volume_grpc, filer, filer_grpc, s3, s3_grpc] = free_ports();
        let at = |name: &str| folder.join(name).display().to_string();
        let mut command = Command::new("sh");
        command
            .args(["-c", WATCHDOG, "seaweed"])
            .arg(&folder)
            .arg(weed)
            .arg(format!("-logdir={}", folder.display()))
            .arg("server")
            .arg(format!("-dir={}", folder.display()))
            .args(["-ip=127.0.0.1", "-ip.bind=127.0.0.1"])
            // A single node, which does not wait for an election.
            .args(["-master.peers=none", "-master.telemetry=false"])
            .args(["-master.volumeSizeLimitMB=64", "-volume.max=5000"])
            .arg("-volume.minFreeSpace=64MiB")
            .arg(format!("-master.port={master}"))
            .arg(format!("-master.port.grpc={master_grpc}"))
            .arg(format!("-volume.port={volume}"))
            .arg(format!("-volume.port.grpc={volume_grpc}"))
            .arg(format!("-filer.port={filer}"))
            .arg(format!("-filer.port.grpc={filer_grpc}"))
            .arg(format!("-filer.localSocket={}", at("filer.sock")))
            // Small objects are stored in its index, which accepts a hundred thousand of them in seconds.
            .arg("-filer.saveToFilerLimit=4096")
            .args(["-s3", "-s3.port.iceberg=0", "-s3.port.lance=0"])
            .arg(format!("-s3.port={s3}"))
            .arg(format!("-s3.port.grpc={s3_grpc}"))
            .arg(format!("-s3.localSocket={}", at("s3.sock")))
            .arg(format!("-s3.config={}", at("s3.json")))
            .arg(format!("-s3.iam.config={}", at("iam.json")));
        let grpc_ports = [master_grpc, volume_grpc, filer_grpc, s3_grpc].map(|port| port.to_string());
        // It would read credentials and settings from our environment and home folder.
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", &folder)
            .env("GRPC_PORTS", grpc_ports.join(" "))
            .current_dir(&folder)
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let mut auto_delete = command.spawn().expect("there is a shell");
        let server = Self { s3: loopback(s3), filer: loopback(filer), folder, _lifeline: auto_delete.stdin.take() };
        server.wait_until_ready(&mut auto_delete)?;
        Ok(server)
    }

    /// The server is ready when it accepts an object and returns it.
    fn wait_until_ready(&self, auto_delete: &mut Child) -> Result<(), String> {
        // More than fits into the index, so that the part for the content must be ready as well.
        let content = vec![7; 100_000];
        let begun = Instant::now();
        while !self.is_ready(&content) {
            let log = || fs::read_to_string(self.folder.join("weed.log")).unwrap_or_default();
            if auto_delete.try_wait().unwrap().is_some() {
                let log = log();
                let _ = fs::remove_dir_all(&self.folder);
                return Err(log);
            }
            assert!(begun.elapsed() < PATIENCE, "SeaweedFS is not ready after {PATIENCE:?}:\n{}", log());
            std::thread::sleep(POLL);
        }
        Ok(())
    }

    fn is_ready(&self, content: &[u8]) -> bool {
        let ask = |address, method, path, body| {
            let mut connection = Connection::open(address).ok()?;
            let (status, body) = connection.exchange(method, path, body).ok()?;
            (status / 100 == 2).then_some(body)
        };
        let path = "/public-ready/object";
        // Rejected if the bucket exists already.
        let _ = ask(self.filer, "POST", "/buckets/public-ready/", &[]);
        ask(self.s3, "PUT", path, content).is_some()
            && ask(self.s3, "GET", path, &[]).is_some_and(|body| body == content)
    }
}

impl Bucket {
    /// `s3://bucket/key`
    pub(crate) fn uri(&self, key: &str) -> String {
        format!("s3://{}/{key}", self.name)
    }

    pub(crate) fn server(&self) -> &'static Seaweed {
        self.server
    }

    pub(crate) fn put(&self, key: &str, content: &[u8]) {
        let mut connection = Connection::open(self.server.s3).unwrap();
        must(&mut connection, "PUT", &self.path(key), content);
    }

    /// The content of an object, read without S3; `None` if it does not exist.
    pub(crate) fn get(&self, key: &str) -> Option<Vec<u8>> {
        let mut filer = Connection::open(self.server.filer).unwrap();
        let path = format!("/buckets{}", self.path(key));
        let (status, content) = filer.exchange("GET", &path, &[]).unwrap();
        (status == 200).then_some(content)
    }

    /// The number of unfinished multipart uploads in a public bucket.
    pub(crate) fn unfinished_uploads(&self) -> usize {
        let mut connection = Connection::open(self.server.s3).unwrap();
        let path = format!("/{}?uploads", self.name);
        let (status, response) = connection.exchange("GET", &path, &[]).unwrap();
        let response = String::from_utf8(response).unwrap();
        assert_eq!(status, 200, "{response}");
        response.matches("<UploadId>").count()
    }

    pub(crate) fn delete(&self, key: &str) {
        let mut connection = Connection::open(self.server.s3).unwrap();
        must(&mut connection, "DELETE", &self.path(key), &[]);
    }

    /// Uploads each file in `folder` and its subfolders, as an object named `prefix` plus its relative path.
    pub(crate) fn put_folder(&self, prefix: &str, folder: &Path) {
        for entry in walkdir::WalkDir::new(folder) {
            let entry = entry.unwrap();
            if entry.file_type().is_file() {
                let relative = entry.path().strip_prefix(folder).unwrap();
                let key = format!("{prefix}{}", relative.to_str().unwrap());
                self.put(&key, &fs::read(entry.path()).unwrap());
            }
        }
    }

    /// Creates objects with the same content quickly (100,000 of up to 4 KB within ten seconds), one per name that
    /// `key` returns for `0..count`. No key may end in `/`.
    pub(crate) fn fill(&self, count: usize, key: impl Fn(usize) -> String + Sync, content: &[u8]) {
        let next = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..UPLOADERS {
                scope.spawn(|| {
                    let mut filer = Connection::open(self.server.filer).unwrap();
                    loop {
                        let number = next.fetch_add(1, Ordering::Relaxed);
                        if number >= count {
                            break;
                        }
                        let path = format!("/buckets{}", self.path(&key(number)));
                        must(&mut filer, "PUT", &path, content);
                    }
                });
            }
        });
    }

    fn path(&self, key: &str) -> String {
        format!("/{}/{}", self.name, utf8_percent_encode(key, KEY))
    }
}

impl Login {
    /// Signs `command` in only by the environment: no AWS settings of this computer reach it.
    pub(crate) fn sign_in(&self, command: &mut Command, endpoint: &str) {
        without_aws(command, endpoint)
            .env("AWS_ACCESS_KEY_ID", self.access_key)
            .env("AWS_SECRET_ACCESS_KEY", self.secret_key);
    }

    fn as_profile(self) -> String {
        format!(
            "[profile {}]\nregion = us-east-1\naws_access_key_id = {}\naws_secret_access_key = {}\n",
            self.profile, self.access_key, self.secret_key
        )
    }
}

/// Signs `command` in with a profile of [`Seaweed::aws_config`]; STS is the same server.
pub(crate) fn use_profile(command: &mut Command, profile: &str, endpoint: &str) {
    without_aws(command, endpoint)
        .env("AWS_CONFIG_FILE", Seaweed::shared().aws_config())
        .env("AWS_PROFILE", profile)
        .env("AWS_ENDPOINT_URL_STS", endpoint);
}

/// Hides the AWS settings and the proxy of this computer from `command`, and sends it to `endpoint`.
pub(crate) fn without_aws<'c>(command: &'c mut Command, endpoint: &str) -> &'c mut Command {
    for (name, _) in std::env::vars_os() {
        let upper = name.to_string_lossy().to_uppercase();
        if upper.starts_with("AWS_") || upper.ends_with("_PROXY") {
            command.env_remove(name);
        }
    }
    command
        .env("AWS_CONFIG_FILE", "/dev/null")
        .env("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
        .env("AWS_EC2_METADATA_DISABLED", "true")
        .env("AWS_REGION", "us-east-1")
        .env("AWS_ENDPOINT_URL_S3", endpoint)
}

fn weed() -> PathBuf {
    super::python_packages("seaweedfs").join("bin/weed")
}

fn write_config(folder: &Path) {
    let known = LOGINS.iter().filter(|login| !login.actions.is_empty());
    let mut identities: Vec<_> = known
        .filter(|login| **login != IMPOSTOR)
        .map(|login| {
            serde_json::json!({
                "name": login.profile,
                "credentials": [{"accessKey": login.access_key, "secretKey": login.secret_key}],
                "actions": login.actions,
            })
        })
        .collect();
    identities.push(serde_json::json!({
        "name": "anonymous",
        "actions": ["Write", format!("Read:{PUBLIC}*"), format!("List:{PUBLIC}*")],
    }));
    let config = serde_json::json!({ "identities": identities });
    fs::write(folder.join("s3.json"), config.to_string()).unwrap();
    let policy = |statement| serde_json::json!({"Version": "2012-10-17", "Statement": [statement]});
    let trust = policy(serde_json::json!({
        "Effect": "Allow", "Principal": "*", "Action": ["sts:AssumeRole"],
    }));
    let everything = policy(serde_json::json!({
        "Effect": "Allow", "Action": ["s3:*", "sts:*"], "Resource": ["*"],
    }));
    let iam = serde_json::json!({
        "sts": {
            "tokenDuration": "1h",
            "maxSessionLength": "12h",
            "issuer": "tests",
            "signingKey": "dGhlIGtleSB0aGF0IHNpZ25zIHRoZSB0ZXN0cycgdG9rZW5z",
        },
        "policy": {"defaultEffect": "Deny", "storeType": "memory"},
        "policies": [{"name": "Everything", "document": everything}],
        "roles": [{
            "roleName": ROLE_PROFILE,
            "roleArn": ROLE,
            "trustPolicy": trust,
            "attachedPolicies": ["Everything"],
        }],
    });
    fs::write(folder.join("iam.json"), iam.to_string()).unwrap();
    // Each bucket has its own volumes: one at a time instead of seven, or a few dozen tests would use them up.
    let growth = "[master.volume_growth]\ncopy_1 = 1\n";
    fs::write(folder.join("master.toml"), growth).unwrap();
    let mut profiles = LOGINS.map(Login::as_profile).to_vec();
    profiles.push(format!("[profile {ROLE_PROFILE}]\nrole_arn = {ROLE}\nsource_profile = {}\n", ADMIN.profile));
    fs::write(folder.join("aws-config"), profiles.join("\n")).unwrap();
}

fn loopback(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

/// Ports that were free a moment ago.
fn free_ports<const COUNT: usize>() -> [u16; COUNT] {
    // All of them are held until the last one is known, so no two are equal.
    let listeners = [(); COUNT].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    listeners.map(|listener| listener.local_addr().unwrap().port())
}

/// The response must report success.
fn must(connection: &mut Connection, method: &str, path: &str, body: &[u8]) {
    let (status, response) = connection.exchange(method, path, body).unwrap();
    assert!(
        status / 100 == 2,
        "SeaweedFS returned {status} for {method} {path}: {}",
        String::from_utf8_lossy(&response)
    );
}
