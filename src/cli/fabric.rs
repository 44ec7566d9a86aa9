//! `clusterplan fabric`

use clap::Args;

use super::network::{NetworkArguments, gpus};
use super::options::Format;
use super::session::message;
use super::{Answer, Session};
use crate::diagnostics::{Code, Diagnostic, Span};
use crate::report::{infeasible_json, infeasible_page, quote_csv, quote_json, quote_page};
use crate::study::quote;

/// `clusterplan fabric`
#[derive(Args, Debug)]
pub(super) struct Fabric {
    #[command(flatten)]
    network: NetworkArguments,
    /// GPUs to join, spares included
    #[arg(long, value_name = "GPUS", value_parser = gpus())]
    accelerators: u32,
    /// The price book's id
    #[arg(long, value_name = "ID", default_value = "neocloud-2026h2")]
    prices: String,
    /// The site's id, whose racks are filled
    #[arg(long, value_name = "ID", default_value = "us-colo")]
    site: String,
}

impl Fabric {
    pub(super) fn run(&self, mut session: Session) -> (Answer, Session) {
        let catalog = session.catalog();
        let network = self.network.find(&catalog, &mut session);
        let mut at = |flag: &str, text: &str| {
            let file = session.sources.add(flag, text);
            Span { file, range: 0..text.len() }
        };
        let (prices_at, site_at) = (at("--prices", &self.prices), at("--site", &self.site));
        let prices = catalog.price_books.find(&self.prices, &prices_at, &session.sink);
        let site = catalog.sites.find(&self.site, &site_at, &session.sink);
        let (Some(network), Some(prices), Some(site)) = (network, prices, site) else {
            return (Answer::Mistaken, session);
        };
        let per_node = network.node.accelerators;
        if !self.accelerators.is_multiple_of(per_node) {
            let message = format!("{} GPUs do not fill nodes of {per_node}", self.accelerators);
            session
                .sink
                .push(Diagnostic::new(Code::Inconsistent, message).hint("--accelerators is a multiple of that"));
        }
        crate::scenario::check_fabric_prices(&network.fabric, &prices, &prices_at, &session.sink);
        if !session.sink.is_empty() {
            return (Answer::Mistaken, session);
        }
        let title = format!("{} GPUs of {} on {}", self.accelerators, network.node.id, network.fabric.entry.id);
        let nodes = self.accelerators / per_node;
        let answer = match quote(&network.node, &network.fabric, &network.choice, nodes, &prices, &site) {
            Ok(quote) => Answer::Yes(match session.options.format {
                Format::Json => quote_json(&quote).into_bytes(),
                Format::Csv => quote_csv(&quote, session.options.bom),
                Format::Table | Format::Md => session.page(&quote_page(title, &quote)),
            }),
            Err(infeasible) => Answer::No {
                data: (session.options.format == Format::Json)
                    .then(|| infeasible_json(&title, &infeasible, None).into_bytes()),
                message: message(&infeasible_page(&title, &infeasible, None)),
            },
        };
        (answer, session)
    }
}
