//! The addresses and the administrator account of MariaDB, from `database_url`, `replica_url` or the private server.
//! Knows no driver.

use std::fmt;
use std::ops::Range;
use std::path::PathBuf;

use percent_encoding::percent_decode_str;
use secrecy::SecretString;
use url::Url;

const DEFAULT_PORT: u16 = 3306;

#[derive(Debug, Clone)]
pub struct DatabaseAddress {
    pub endpoint: Endpoint,
    pub others: Vec<Endpoint>,
    /// The account that probes the hosts and, except on replicas, creates the accounts and databases of projects.
    pub admin_user: String,
    pub admin_password: SecretString,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Endpoint {
    Socket(PathBuf),
    Tcp {
        /// A name or an IP address. An IPv6 address has no brackets.
        host: String,
        port: u16,
        tls: Tls,
    },
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Socket(path) => write!(f, "{}", path.display()),
            Self::Tcp { host, port, .. } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Tcp { host, port, .. } => write!(f, "{host}:{port}"),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tls {
    Off,
    Required {
        /// The certificate authorities to trust instead of the built-in ones.
        ca_file: Option<PathBuf>,
        verify: Verify,
        client: Option<ClientCertificate>,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientCertificate {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

/// The value of `ssl_ca` that stands for the trust store of the machine.
const SYSTEM: &str = "system";

/// The trust store on Debian and Alpine, Fedora, openSUSE, and BSD and macOS.
const SYSTEM_STORES: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verify {
    Identity,
    Issuer,
    /// Nothing is checked: the connection is encrypted, but may be to another server than the intended one.
    Nothing,
}

impl DatabaseAddress {
    /// Parses a URL, with commas between several hosts: `mysql://user:password@a,b:3307`. Ignores a path (`/database`),
    /// since the administrator has no default database.
    pub fn parse(text: &str) -> Result<Self, String> {
        let form = || "a URL such as mysql://user:password@host:3306".to_owned();
        let Some(hosts) = host_list(text).filter(|hosts| text[hosts.clone()].contains(',')) else {
            return Self::parse_one(text);
        };
        if text[hosts.clone()].split(',').any(str::is_empty) {
            return Err("a URL in whose list no host is empty".to_owned());
        }
        let mut address: Option<Self> = None;
        for host in text[hosts.clone()].split(',') {
            let next = Self::parse_one(&format!("{}{host}{}", &text[..hosts.start], &text[hosts.end..]))?;
            match &mut address {
                _ if matches!(next.endpoint, Endpoint::Socket(_)) => {
                    return Err("a URL with either several hosts or a socket".to_owned());
                }
                Some(address) if address.endpoints().any(|endpoint| *endpoint == next.endpoint) => {
                    return Err("a URL that names each host once".to_owned());
                }
                Some(address) => address.others.push(next.endpoint),
                None => address = Some(next),
            }
        }
        address.ok_or_else(form)
    }

    pub fn endpoints(&self) -> impl Iterator<Item = &Endpoint> {
        std::iter::once(&self.endpoint).chain(&self.others)
    }

    fn parse_one(text: &str) -> Result<Self, String> {
        let form = || "a URL such as mysql://user:password@host:3306".to_owned();
        let url = Url::parse(text).map_err(|_| form())?;
        if !matches!(url.scheme(), "mysql" | "mariadb") || url.fragment().is_some() {
            return Err(form());
        }
        let parameters = Parameters::read(&url)?;
        let admin_user = decoded(url.username())?;
        if admin_user.is_empty() {
            return Err("a URL with a user, such as mysql://user:password@host:3306".to_owned());
        }
        let admin_password = SecretString::from(decoded(url.password().unwrap_or_default())?);
        Ok(Self { endpoint: parameters.endpoint(&url)?, others: Vec::new(), admin_user, admin_password })
    }
}

fn host_list(text: &str) -> Option<Range<usize>> {
    let start = text.find("://")? + 3;
    let end = text[start..].find(['/', '?', '#']).map_or(text.len(), |at| start + at);
    let user_end = text[start..end].rfind('@').map_or(start, |at| start + at + 1);
    Some(user_end..end)
}

#[derive(Default)]
struct Parameters {
    socket: Option<PathBuf>,
    require_ssl: Option<bool>,
    verify_ca: Option<bool>,
    verify_identity: Option<bool>,
    ssl_ca: Option<PathBuf>,
    ssl_cert: Option<PathBuf>,
    ssl_key: Option<PathBuf>,
}

impl Parameters {
    fn read(url: &Url) -> Result<Self, String> {
        let mut read = Self::default();
        for (name, value) in url.query_pairs() {
            match name.as_ref() {
                "socket" => read.socket = Some(PathBuf::from(value.as_ref())),
                "ssl_ca" if value == SYSTEM => read.ssl_ca = Some(system_store()?),
                "ssl_ca" => read.ssl_ca = Some(PathBuf::from(value.as_ref())),
                "ssl_cert" => read.ssl_cert = Some(PathBuf::from(value.as_ref())),
                "ssl_key" => read.ssl_key = Some(PathBuf::from(value.as_ref())),
                "require_ssl" => read.require_ssl = Some(truth(&name, &value)?),
                "verify_ca" => read.verify_ca = Some(truth(&name, &value)?),
                "verify_identity" => read.verify_identity = Some(truth(&name, &value)?),
                _ => {
                    return Err("a URL with no other parameters than socket, require_ssl, \
                                verify_ca, verify_identity, ssl_ca, ssl_cert and ssl_key"
                        .to_owned());
                }
            }
        }
        Ok(read)
    }

    fn endpoint(self, url: &Url) -> Result<Endpoint, String> {
        let tls = self.tls()?;
        if let Some(socket) = self.socket {
            return if tls != Tls::Off {
                Err("a URL with either socket or require_ssl: a socket is not encrypted".to_owned())
            } else if socket.is_absolute() {
                Ok(Endpoint::Socket(socket))
            } else {
                Err("a URL whose socket is an absolute path".to_owned())
            };
        }
        let host = url.host_str().filter(|host| !host.is_empty());
        let host = host.ok_or("a URL with a host, or with ?socket=/path")?;
        Ok(Endpoint::Tcp {
            host: host.trim_matches(['[', ']']).to_owned(),
            port: url.port().unwrap_or(DEFAULT_PORT),
            tls,
        })
    }

    fn tls(&self) -> Result<Tls, String> {
        let files = [&self.ssl_ca, &self.ssl_cert, &self.ssl_key];
        let asks = self.verify_ca.or(self.verify_identity).is_some() || files.into_iter().any(Option::is_some);
        if !self.require_ssl.unwrap_or(false) {
            return if asks {
                Err("a URL with require_ssl=true, which its other parameters ask for".to_owned())
            } else {
                Ok(Tls::Off)
            };
        }
        let verify = match (self.verify_ca, self.verify_identity) {
            (Some(false), _) => Verify::Nothing,
            (_, Some(false)) => Verify::Issuer,
            _ => Verify::Identity,
        };
        let client = match (self.ssl_cert.clone(), self.ssl_key.clone()) {
            (None, None) => None,
            (Some(certificate), Some(key)) => Some(ClientCertificate { certificate, key }),
            _ => return Err("a URL with both ssl_cert and ssl_key, or neither".to_owned()),
        };
        Ok(Tls::Required { ca_file: self.ssl_ca.clone(), verify, client })
    }
}

fn system_store() -> Result<PathBuf, String> {
    let found = SYSTEM_STORES.iter().map(PathBuf::from).find(|path| path.is_file());
    found.ok_or_else(|| "a URL whose ssl_ca is a file: this machine has no trust store in PEM form".to_owned())
}

fn truth(name: &str, value: &str) -> Result<bool, String> {
    match value {
        "true" | "1" => Ok(true),
        "false" | "0" => Ok(false),
        _ => Err(format!("a URL whose {name} is true or false")),
    }
}

fn decoded(text: &str) -> Result<String, String> {
    percent_decode_str(text)
        .decode_utf8()
        .map(std::borrow::Cow::into_owned)
        .map_err(|_| "a URL whose user and password are UTF-8, percent-encoded".to_owned())
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;

    use super::*;

    #[test]
    fn user_and_password_are_percent_decoded_and_the_port_has_a_default() {
        let address = DatabaseAddress::parse("mysql://ad%40min:p%2Fw%3A@db.example.org/ignored").unwrap();
        assert_eq!(address.admin_user, "ad@min");
        assert_eq!(address.admin_password.expose_secret(), "p/w:");
        let (host, port, tls) = ("db.example.org".to_owned(), 3306, Tls::Off);
        assert_eq!(address.endpoint, Endpoint::Tcp { host, port, tls });
    }

    #[test]
    fn an_ipv6_host_loses_its_brackets() {
        let address = DatabaseAddress::parse("mariadb://u:p@[::1]:3307").unwrap();
        let (host, port, tls) = ("::1".to_owned(), 3307, Tls::Off);
        assert_eq!(address.endpoint, Endpoint::Tcp { host, port, tls });
    }

    #[test]
    fn a_url_may_name_several_hosts() {
        let address = DatabaseAddress::parse("mysql://u:p,w@a:3307,b,[::1]:3308/?require_ssl=true").unwrap();
        let hosts: Vec<String> = address.endpoints().map(ToString::to_string).collect();
        assert_eq!(hosts, ["a:3307", "b:3306", "[::1]:3308"]);
        assert_eq!(address.admin_password.expose_secret(), "p,w");
        assert!(address.endpoints().all(|host| matches!(host, Endpoint::Tcp { tls: Tls::Required { .. }, .. })));
    }

    #[test]
    fn a_socket_needs_no_host_name_of_its_own() {
        let address = DatabaseAddress::parse("mysql://u:p@localhost?socket=/run/db.sock").unwrap();
        assert_eq!(address.endpoint, Endpoint::Socket("/run/db.sock".into()));
    }

    #[test]
    fn tls_is_verified_whole_unless_the_url_says_less() {
        let cases =
            [("", Verify::Identity), ("&verify_identity=false", Verify::Issuer), ("&verify_ca=false", Verify::Nothing)];
        for (parameters, expected) in cases {
            let url = format!("mysql://u:p@h?require_ssl=true{parameters}");
            let Endpoint::Tcp { tls, .. } = DatabaseAddress::parse(&url).unwrap().endpoint else {
                panic!("not TCP");
            };
            let expected = Tls::Required { ca_file: None, verify: expected, client: None };
            assert_eq!(tls, expected);
        }
    }

    #[test]
    fn a_client_certificate_comes_with_its_key() {
        let parse = |files: &str| DatabaseAddress::parse(&format!("mysql://u:p@h?require_ssl=true&{files}"));
        let Endpoint::Tcp { tls, .. } = parse("ssl_ca=/ca.pem&ssl_cert=/c.pem&ssl_key=/k.pem").unwrap().endpoint else {
            panic!("not TCP");
        };
        let client = Some(ClientCertificate { certificate: "/c.pem".into(), key: "/k.pem".into() });
        assert_eq!(tls, Tls::Required { ca_file: Some("/ca.pem".into()), verify: Verify::Identity, client });
        for half in ["ssl_cert=/c.pem", "ssl_key=/k.pem"] {
            assert!(parse(half).unwrap_err().contains("both ssl_cert and ssl_key"), "{half}");
        }
    }

    #[test]
    fn what_is_refused_is_never_repeated() {
        let refused = [
            "mysql://hunter2",
            "postgres://u:hunter2@h",
            "mysql://u:hunter2@h?pool_max=3",
            "mysql://u:hunter2@h?verify_ca=false",
            "mysql://u:hunter2@h?ssl_cert=/c.pem&ssl_key=/k.pem",
            "mysql://u:hunter2@h?require_ssl=maybe",
            "mysql://u:hunter2@h?socket=relative",
            "mysql://:hunter2@h",
            "mysql://u:%ffhunter2@h",
            "mysql://u:hunter2@a,,b",
            "mysql://u:hunter2@a,b:x",
            "mysql://u:hunter2@a,a:3306",
            "mysql://u:hunter2@a,b?socket=/run/db.sock",
            "hunter2",
        ];
        for text in refused {
            let expected = DatabaseAddress::parse(text).unwrap_err();
            assert!(!expected.contains("hunter2"), "{expected}");
        }
    }

    #[test]
    fn debug_output_hides_the_password() {
        let address = DatabaseAddress::parse("mysql://u:hunter2@h").unwrap();
        assert!(!format!("{address:?}").contains("hunter2"));
    }
}
