//! The server's log as its settings want it.

use base::settings::ServerSettings;
use types::datetime::zone::TimeZone;

/// What the log says, and what its lines begin with.
pub fn set_up(settings: &ServerSettings) {
    base::log::set_manner(base::log::Manner::from_settings(
        &settings.string("log_min_messages"),
        &settings.string("log_min_error_statement"),
        &settings.string("log_error_verbosity"),
    ));
    let zone = TimeZone::by_name(&settings.string("log_timezone")).unwrap_or_else(TimeZone::utc);
    let clock = move |us| (zone.to_local(us), zone.period_at(us).abbreviation.clone());
    base::log::prefix::set_prefix(&settings.string("log_line_prefix"), Box::new(clock));
}
