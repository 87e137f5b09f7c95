//! A drawn experiment as a user would write it, and in a line.
use super::{KIB, Kind, Load, MIB, MODELS, Point, Topology};

impl Point {
    /// Its experiment, as a user would write it.
    pub(crate) fn text(&self) -> String {
        let Load {
            random,
            read,
            direct,
            block,
            depth,
            jobs,
            total,
            size,
        } = self.load;
        let name = if random { "random" } else { "sequential" };
        let yes = |on: bool| if on { "yes" } else { "no" };
        let mut text = format!(
            "title = \"Drawn\"\ndesign.seed = {}\ndisks = {{ model = \"{}\", count = {}, override = {{ {} }} }}\n",
            self.seed, MODELS[self.model].0, self.disks, self.overrides
        );
        text += &self.topology();
        text += &format!("\n[array]\nlayout = \"{}\"\n", self.layout);
        if !["single", "linear", "raid1"].contains(&self.layout) && self.filesystem != "zfs" {
            text += &format!("chunk = \"{}B\"\n", self.chunk);
        }
        if self.layout == "single" && self.filesystem == "zfs" {
            text += "engine = \"zfs\"\n";
        }
        if self.state != "clean" {
            text += &format!("state = \"{}\"\n", self.state);
        }
        text += &self.array;
        text += &format!(
            "\n[host]\nkernel = \"{}\"\nmemory = \"{}B\"\nwrite-cache = {}\n{}",
            self.kernel, self.memory, self.write_cache, self.host
        );
        if let Some(tool) = &self.tool {
            text += &format!("cpu = \"{}\"\ncores = {}\n", tool.cpu, tool.cores);
        }
        if let Some(scheduler) = self.scheduler {
            text += &format!("scheduler = \"{scheduler}\"\n");
        }
        if self.filesystem != "none" {
            text += &format!("\n[filesystem]\nkind = \"{}\"\n", self.filesystem);
        }
        if let Some(tool) = &self.tool {
            return text + &tool.text();
        }
        text += &format!(
            "\n[profile]\nname = \"{name}\"\nblock = \"{block}B\"\ndepth = {depth}\njobs = {jobs}\ndirect = \"{}\"\n\
             time = \"100000s\"\ntotal = \"{total}B\"\nread-percent = {}\n",
            yes(direct),
            if read { 100 } else { 0 }
        );
        if !read {
            text += "end-fsync = \"yes\"\n";
        }
        if size > 0 {
            text += &format!("size = \"{size}B\"\n");
        }
        text + &self.profile
    }

    fn topology(&self) -> String {
        let kind = match self.kind() {
            Kind::Scsi => "scsi",
            Kind::Pata => "pata",
            Kind::Sata | Kind::Solid => "sata",
            Kind::Nvme => "nvme",
        };
        match self.topology {
            Topology::Own => String::new(),
            Topology::Cards { on_channel, bus } => {
                let disks: Vec<String> = (0..self.disks).map(|d| format!("\"disk{d}\"")).collect();
                let channels = disks.chunks(on_channel.max(1));
                let channels: Vec<String> =
                    channels.map(|c| format!("[{}]", c.join(", "))).collect();
                let bus_name = if bus.is_some() {
                    "bus = \"slot\"\n"
                } else {
                    ""
                };
                let bus = bus.map_or_else(String::new, |bus| {
                    format!("\n[topology.buses.slot]\nkind = \"{bus}\"\n")
                });
                let disks = if self.disks == 1 {
                    "[\"disk\"]".to_owned()
                } else {
                    channels.join(", ")
                };
                format!(
                    "{bus}\n[topology.controllers.card]\nkind = \"{kind}\"\n{bus_name}channels = {}\ndisks = [{disks}]\n",
                    channels.len()
                )
            }
            Topology::Hardware { cache, back } => format!(
                "\n[topology.controllers.card]\nkind = \"hardware-raid\"\nlink = \"{kind}\"\ncache = \"{cache}\"\n\
                 cache-mode = \"{}\"\n",
                if back { "write-back" } else { "write-through" }
            ),
        }
    }

    /// In a line.
    pub(crate) fn told(&self) -> String {
        let Load {
            random,
            read,
            direct,
            block,
            depth,
            jobs,
            total,
            size,
        } = self.load;
        let machine = format!(
            "{} x {} {{{}}} {} chunk {}K {} {:?} linux {} {} wc={} mem={}M fs={}",
            self.disks,
            MODELS[self.model].0,
            self.overrides,
            self.layout,
            self.chunk / KIB,
            self.state,
            self.topology,
            self.kernel,
            self.scheduler.unwrap_or("-"),
            self.write_cache,
            self.memory / MIB,
            self.filesystem,
        );
        if let Some(tool) = &self.tool {
            return format!("{machine} {}", tool.told());
        }
        format!(
            "{machine} {} {}{}: {}B x {depth} x {jobs}, {}M of {}M",
            if random { "random" } else { "sequential" },
            if read { "read" } else { "write" },
            if direct { " direct" } else { "" },
            block,
            total / MIB,
            size / MIB,
        )
    }
}
