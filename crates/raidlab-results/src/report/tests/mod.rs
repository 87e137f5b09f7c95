mod compared;
mod experiments;
mod made;
mod ratios;
mod snapshots;
mod synthetic;
