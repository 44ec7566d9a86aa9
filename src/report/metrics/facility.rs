//! Power, racks, energy and emissions.

figures! {
    Facility:
    "facility.it_kw": Kilowatts, "IT power, provisioned", "All parts at their maximum: it sizes rent, racks and the grid connection.";
        "sum over parts of count x maximum power" from ["loads.maximum"]
        => |e| e.built.facility.provisioned_it;
    "facility.total_kw": Kilowatts, "Facility power, provisioned", "With cooling and losses.";
        "IT power x PUE" from ["facility.it_kw", "sites.pue"] => |e| e.built.facility.provisioned_total;
    "facility.all_in_kw_per_gpu": Kilowatts, "  a GPU, all in", "Its part of the facility's provisioned power: of node, network, storage, cooling and losses.";
        "facility power, provisioned / GPUs bought" from ["facility.total_kw", "cluster.accelerators", "cluster.spares"]
        => |e| e.built.facility.provisioned_total * (1.0 / e.built.drivers.accelerators as f64);
    "facility.budget_nodes_count": Count, "Nodes that the power budget holds", "Whole nodes of this kind, each with its part of network and storage; headroom is kept free and is in no bill.";
        "power budget / (IT power of a node, all in, x PUE x headroom), rounded down" from ["cluster.power", "facility.it_kw", "sites.pue"]
        => |e| e.built.capacity?.nodes;
    "facility.budget_gpus_count": Count, "  and GPUs", "Those of whole nodes.";
        "nodes that the budget holds x GPUs of a node" from ["facility.budget_nodes_count", "nodes.accelerators"]
        => |e| e.built.capacity?.accelerators;
    "facility.average_it_kw": Kilowatts, "IT power, average", "Over a year: nodes in jobs for the share of hours used, idle for the rest.";
        "sum over parts of count x average power" from ["loads.average", "power.idle", "power.busy", "finance.utilisation"]
        => |e| e.built.facility.average_it;
    "facility.average_total_kw": Kilowatts, "Facility power, average", "With cooling and losses.";
        "average IT power x PUE" from ["facility.average_it_kw", "sites.pue"] => |e| e.built.facility.average_total;
    "facility.racks_count": Count, "Racks", "Of nodes in their own; switches, servers and storage share the rest.";
        "parts / as many as a rack's power and height allow, rounded up" from ["sites.rack", "nodes.rack_units", "nodes.max_power"]
        => |e| e.built.racks;
    "facility.energy_kwh_per_year": KilowattHours, "Energy a year", "What the facility takes from the grid.";
        "average facility power x 8,760 h" from ["facility.average_total_kw"]
        => |e| e.built.facility.energy_per_year;
    "facility.emissions_tco2e_per_year": Tonnes, "Emissions a year", "Of the energy, location-based.";
        "energy x carbon intensity of the grid" from ["facility.energy_kwh_per_year", "sites.carbon_intensity"]
        => |e| e.built.facility.emissions_per_year;
    "facility.energy_kwh_per_gpu_hour": KilowattHours, "Energy of a GPU-hour", "What the facility draws for an hour of calendar time of one GPU bought.";
        "energy a year / (8,760 h x GPUs bought)" from ["facility.energy_kwh_per_year", "cluster.accelerators", "cluster.spares"]
        => |e| e.owned_hour().energy;
    "facility.emissions_gco2e_per_gpu_hour": Grams, "Emissions of a GPU-hour", "Emissions, location-based, of an hour of calendar time of one GPU bought.";
        "emissions a year / (8,760 h x GPUs bought)" from ["facility.emissions_tco2e_per_year", "cluster.accelerators", "cluster.spares"]
        => |e| e.owned_hour().emissions;
    "facility.energy_kwh_per_useful_gpu_hour": KilowattHours, "Energy of a useful GPU-hour", "What the facility draws for an hour of one GPU's useful work.";
        "energy a year / (8,760 h x utilisation x goodput x GPUs at work)"
        from ["facility.energy_kwh_per_year", "finance.utilisation", "goodput.ratio", "cluster.accelerators"]
        => |e| e.useful_hour().energy;
    "facility.emissions_gco2e_per_useful_gpu_hour": Grams, "Emissions of a useful GPU-hour", "Emissions, location-based, of an hour of one GPU's useful work.";
        "emissions a year / (8,760 h x utilisation x goodput x GPUs at work)"
        from ["facility.emissions_tco2e_per_year", "finance.utilisation", "goodput.ratio", "cluster.accelerators"]
        => |e| e.useful_hour().emissions;
    "facility.energy_kwh_per_pflop_day": KilowattHours, "Energy of a PFLOP-day", "Of 10^15 model FLOPs a second for a day, causal attention.";
        "energy of a useful GPU-hour x 24 h x 1,000 TFLOP/s / model FLOP rate a GPU"
        from ["facility.energy_kwh_per_useful_gpu_hour", "training.tflops_per_s_per_gpu"]
        => |e| e.pflop_day_footprint()?.energy;
    "facility.emissions_gco2e_per_pflop_day": Grams, "Emissions of a PFLOP-day", "Emissions, location-based, of 10^15 model FLOPs a second for a day, causal attention.";
        "emissions of a useful GPU-hour x 24 h x 1,000 TFLOP/s / model FLOP rate a GPU"
        from ["facility.emissions_gco2e_per_useful_gpu_hour", "training.tflops_per_s_per_gpu"]
        => |e| e.pflop_day_footprint()?.emissions;
    "facility.energy_kwh_per_mtok_input": KilowattHours, "Energy of a million tokens of prompts", "That are not cached: their part of the useful hours.";
        "energy of a useful GPU-hour x cost of a million / cost of a useful GPU-hour"
        from ["facility.energy_kwh_per_useful_gpu_hour", "cost.usd_per_mtok_input", "cost.usd_per_useful_gpu_hour"]
        => |e| e.token_footprint()?.input.energy;
    "facility.emissions_gco2e_per_mtok_input": Grams, "  emissions", "Of that energy, location-based.";
        "emissions of a useful GPU-hour x cost of a million / cost of a useful GPU-hour"
        from ["facility.emissions_gco2e_per_useful_gpu_hour", "cost.usd_per_mtok_input", "cost.usd_per_useful_gpu_hour"]
        => |e| e.token_footprint()?.input.emissions;
    "facility.energy_kwh_per_mtok_cached": KilowattHours, "Energy of a million cached tokens", "Their part of the useful hours: attention to them.";
        "energy of a useful GPU-hour x cost of a million / cost of a useful GPU-hour"
        from ["facility.energy_kwh_per_useful_gpu_hour", "cost.usd_per_mtok_cached", "cost.usd_per_useful_gpu_hour"]
        => |e| e.token_footprint()?.cached?.energy;
    "facility.emissions_gco2e_per_mtok_cached": Grams, "  emissions", "Of that energy, location-based.";
        "emissions of a useful GPU-hour x cost of a million / cost of a useful GPU-hour"
        from ["facility.emissions_gco2e_per_useful_gpu_hour", "cost.usd_per_mtok_cached", "cost.usd_per_useful_gpu_hour"]
        => |e| e.token_footprint()?.cached?.emissions;
    "facility.energy_kwh_per_mtok_output": KilowattHours, "Energy of a million tokens of answers", "Without their prompts: their part of the useful hours.";
        "energy of a useful GPU-hour x cost of a million / cost of a useful GPU-hour"
        from ["facility.energy_kwh_per_useful_gpu_hour", "cost.usd_per_mtok_output", "cost.usd_per_useful_gpu_hour"]
        => |e| e.token_footprint()?.output.energy;
    "facility.emissions_gco2e_per_mtok_output": Grams, "  emissions", "Of that energy, location-based.";
        "emissions of a useful GPU-hour x cost of a million / cost of a useful GPU-hour"
        from ["facility.emissions_gco2e_per_useful_gpu_hour", "cost.usd_per_mtok_output", "cost.usd_per_useful_gpu_hour"]
        => |e| e.token_footprint()?.output.emissions;
    "facility.energy_kwh_per_mtok_blended": KilowattHours, "Energy of a million tokens, all alike", "Prompts and answers.";
        "energy of a useful GPU-hour x cost of a million / cost of a useful GPU-hour"
        from ["facility.energy_kwh_per_useful_gpu_hour", "cost.usd_per_mtok_blended", "cost.usd_per_useful_gpu_hour"]
        => |e| e.token_footprint()?.blended.energy;
    "facility.emissions_gco2e_per_mtok_blended": Grams, "  emissions", "Of that energy, location-based.";
        "emissions of a useful GPU-hour x cost of a million / cost of a useful GPU-hour"
        from ["facility.emissions_gco2e_per_useful_gpu_hour", "cost.usd_per_mtok_blended", "cost.usd_per_useful_gpu_hour"]
        => |e| e.token_footprint()?.blended.emissions;
    "facility.energy_kwh_per_task": KilowattHours, "Energy of a task", "Of its tokens, runs that fail among them; not of its tools and machines.";
        "energy of the tokens of a task" from ["agents.input_tokens_per_task_count", "agents.output_tokens_per_task_count", "facility.energy_kwh_per_useful_gpu_hour"]
        => |e| e.task_footprint()?.energy;
    "facility.emissions_gco2e_per_task": Grams, "  emissions", "Of that energy, location-based.";
        "emissions of the tokens of a task" from ["agents.input_tokens_per_task_count", "agents.output_tokens_per_task_count", "facility.emissions_gco2e_per_useful_gpu_hour"]
        => |e| e.task_footprint()?.emissions;
    "facility.energy_kwh_per_success": KilowattHours, "Energy of a success", "With the failures paid for it.";
        "energy of a task / share that succeeds" from ["facility.energy_kwh_per_task", "agents.success"]
        => |e| e.success_footprint()?.energy;
    "facility.emissions_gco2e_per_success": Grams, "  emissions", "Of that energy, location-based.";
        "emissions of a task / share that succeeds" from ["facility.emissions_gco2e_per_task", "agents.success"]
        => |e| e.success_footprint()?.emissions;
    "facility.energy_kwh_per_run": KilowattHours, "Energy of the run", "The whole cluster over the run, and the run's part of the hours that no run uses.";
        "energy a year x run with failures / (8,760 h x utilisation)"
        from ["facility.energy_kwh_per_year", "training.effective_days", "finance.utilisation"]
        => |e| e.built.facility.energy_per_year * e.share_of_year()?;
    "facility.emissions_tco2e_per_run": Tonnes, "Emissions of the run", "Emissions, location-based, of the whole cluster over the run, and of the run's part of the hours that no run uses.";
        "emissions a year x run with failures / (8,760 h x utilisation)"
        from ["facility.emissions_tco2e_per_year", "training.effective_days", "finance.utilisation"]
        => |e| e.built.facility.emissions_per_year * e.share_of_year()?;
    "facility.embodied_tco2e": Tonnes, "Embodied in GPUs", "Emissions of making the GPUs that are bought, where their maker states them: not of servers, network and building.";
        "GPUs bought x emissions of making one" from ["cluster.accelerators", "cluster.spares", "accelerators.embodied_carbon"]
        => |e| e.embodied()?;
    "facility.embodied_gco2e_per_useful_gpu_hour": Grams, "  of a useful GPU-hour", "Emissions of making the GPUs over the useful hours of their life.";
        "embodied / (useful hours a year x life of accelerators)"
        from ["facility.embodied_tco2e", "finance.accelerator_life", "finance.utilisation", "goodput.ratio"]
        => |e| e.embodied_of_useful_hour()?;
}
