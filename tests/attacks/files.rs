//! Files of the service that another user of the host has prepared.
