mod compared;
mod experiments;
mod fastest;
mod made;
mod ratios;
mod snapshots;
mod synthetic;
mod worth;
