//! `clusterplan fabric`

use clap::Args;

use super::eval::no;
use super::network::{NetworkArguments, gpus};
use super::options::Format;
use super::{Answer, Session};
use crate::catalog::Reference;
use crate::diagnostics::{Code, Diagnostic, Span};
use crate::report::{quote_csv, quote_json, quote_page};
use crate::scenario::{
    BoundSideNetwork, FABRIC_SPARES, NetworksFile, check_fabric_prices, check_side_prices, check_site_prices,
};
use crate::study::{QuoteInputs, quote};
use crate::units::Fraction;

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
    /// The storage's id, which the storage network reaches
    #[arg(long, value_name = "ID", default_value = "parallel-flash")]
    storage: String,
    /// The id of the storage network, or none [default: that of the node's storage ports]
    #[arg(long, value_name = "ID")]
    storage_network: Option<String>,
    /// The id of the network for management, or none [default: in-band-100g]
    #[arg(long, value_name = "ID")]
    in_band: Option<String>,
    /// The id of the network of the boards that watch over servers, or none [default: out-of-band-1g]
    #[arg(long, value_name = "ID")]
    out_of_band: Option<String>,
    /// Share of switches, modules and cables bought on top, such as 0.02
    #[arg(long, value_name = "SHARE", default_value_t = FABRIC_SPARES)]
    spares: f64,
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
        let storage_at = at("--storage", &self.storage);
        let mut side =
            |flag: &str, id: &Option<String>| id.as_ref().map(|id| Reference { at: at(flag, id), id: id.clone() });
        let wanted = NetworksFile {
            storage: side("--storage-network", &self.storage_network),
            in_band: side("--in-band", &self.in_band),
            out_of_band: side("--out-of-band", &self.out_of_band),
        };
        let prices = catalog.price_books.find(&self.prices, &prices_at, &session.sink);
        let site = catalog.sites.find(&self.site, &site_at, &session.sink);
        let storage = catalog.storage.find(&self.storage, &storage_at, &session.sink);
        let spares = Fraction::new(self.spares);
        if spares.is_none() {
            let message = format!("--spares is {}, and a share is from 0 to 1", self.spares);
            session.sink.push(Diagnostic::new(Code::OutOfRange, message).hint("such as 0.02"));
        }
        let (Some(network), Some(prices), Some(site), Some(storage), Some(spares)) =
            (network, prices, site, storage, spares)
        else {
            return (Answer::Mistaken, session);
        };
        let per_node = network.node.accelerators;
        if !self.accelerators.is_multiple_of(per_node) {
            let message = format!("{} GPUs do not fill nodes of {per_node}", self.accelerators);
            session
                .sink
                .push(Diagnostic::new(Code::Inconsistent, message).hint("--accelerators is a multiple of that"));
        }
        let networks = BoundSideNetwork::chosen(&wanted, &network.node, &site_at, &catalog, &session.sink);
        let networks = networks.unwrap_or_default();
        check_fabric_prices(&network.fabric, &prices, &prices_at, &session.sink);
        check_side_prices(&networks, &prices, &prices_at, &session.sink);
        check_site_prices(&network.choice, &prices, &prices_at, &session.sink);
        if !session.sink.is_empty() {
            return (Answer::Mistaken, session);
        }
        let title = format!("{} GPUs of {} on {}", self.accelerators, network.node.id, network.fabric.entry.id);
        let inputs = QuoteInputs {
            node: &network.node,
            fabric: &network.fabric,
            choice: &network.choice,
            nodes: self.accelerators / per_node,
            networks: &networks,
            storage: &storage,
            spares,
            prices: &prices,
            site: &site,
        };
        let answer = match quote(&inputs) {
            Ok(quote) => Answer::Yes(match session.format {
                Format::Json => quote_json(&quote).into_bytes(),
                Format::Csv => quote_csv(&quote, session.options.bom),
                Format::Table | Format::Md => session.page(&quote_page(title, &quote)),
            }),
            Err(infeasible) => no(&title, &infeasible, None, &session),
        };
        (answer, session)
    }
}
