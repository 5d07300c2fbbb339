//! Private places: those that a rule or the user opens to a client, and those where haft itself listens.

use std::net::{IpAddr, SocketAddr};
#[cfg(feature = "commands")]
use std::sync::Arc;

use haft::policy::address::address_can_be_opened;
#[cfg(feature = "commands")]
use haft::policy::address::check_address;

#[cfg(feature = "commands")]
use crate::web::http::exchange::no_such_name;
use crate::web::http::{Http, HttpError};
#[cfg(feature = "commands")]
use crate::web::network::OwnListeners;
use crate::web::target::WebUrl;

/// A host and port that the client may connect to although they are private.
#[derive(Debug, Clone)]
pub(super) struct PrivatePlace {
    host: String,
    port: u16,
    addresses: OpenAddresses,
}

/// The private addresses of a host that the client may connect to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OpenAddresses {
    /// Any address, because a rule names the host.
    Any,
    /// These addresses, which were shown for approval.
    #[cfg(feature = "commands")]
    These(Vec<IpAddr>),
}

impl PrivatePlace {
    pub(super) fn opens(&self, address: IpAddr) -> bool {
        let agreed = match &self.addresses {
            OpenAddresses::Any => true,
            #[cfg(feature = "commands")]
            OpenAddresses::These(shown) => shown.contains(&address.to_canonical()),
        };
        agreed && address_can_be_opened(address)
    }
}

impl Http {
    /// Returns a client that may also connect to this target's host and port if they are private, because a rule names them.
    #[cfg(feature = "web")]
    pub(crate) fn for_place(&self, target: &WebUrl) -> Self {
        self.with_open_addresses(target, OpenAddresses::Any)
    }

    /// Returns a client that may also connect to these private addresses of the target.
    #[cfg(any(feature = "commands", feature = "web"))]
    pub(crate) fn with_open_addresses(&self, target: &WebUrl, addresses: OpenAddresses) -> Self {
        Self {
            place: Some(PrivatePlace {
                host: target.host().to_owned(),
                port: target.port(),
                addresses,
            }),
            ..self.clone()
        }
    }

    /// Refuses connections to ports that haft itself listens on.
    #[cfg(feature = "commands")]
    pub(crate) fn without_own(mut self, own: Arc<dyn OwnListeners>) -> Self {
        self.own = Some(own);
        self
    }

    /// Returns the private place if it is this target.
    pub(super) fn place_of(&self, target: &WebUrl) -> Option<&PrivatePlace> {
        let is_target =
            |place: &&PrivatePlace| place.host == target.host() && place.port == target.port();
        self.place.as_ref().filter(is_target)
    }

    /// Returns the private addresses that a host resolves to, sorted, as far as this machine knows them.
    ///
    /// # Errors
    /// If haft itself listens there, or the name is not found and there is no proxy that may know it.
    #[cfg(feature = "commands")]
    pub(crate) async fn private_addresses(
        &self,
        target: &WebUrl,
    ) -> Result<Vec<IpAddr>, HttpError> {
        let by_proxy = self.upstream_for(target).is_some();
        let found = match tokio::time::timeout(self.limits.connect, self.look_up(target)).await {
            Ok(Ok(found)) => found,
            _ if by_proxy => Vec::new(),
            Ok(Err(error)) => return Err(error),
            Err(_) => return Err(no_such_name(target, "no answer in time")),
        };
        let private = found.iter().map(IpAddr::to_canonical);
        let mut private: Vec<IpAddr> = private.filter(|to| check_address(*to).is_err()).collect();
        private.sort_unstable();
        private.dedup();
        self.check_own(target, &private)?;
        Ok(private)
    }

    /// Refuses a name that resolves to an address where haft itself listens.
    pub(super) fn check_own(&self, target: &WebUrl, addresses: &[IpAddr]) -> Result<(), HttpError> {
        let Some(own) = &self.own else {
            return Ok(());
        };
        let places = addresses.iter();
        let mut places = places.map(|to| SocketAddr::new(to.to_canonical(), target.port()));
        match places.find(|place| own.listen_at(*place)) {
            None => Ok(()),
            Some(place) => Err(HttpError::OwnListener {
                host: target.host().to_owned(),
                place,
            }),
        }
    }
}
