mod compared;
mod made;
mod ratios;
mod snapshots;
mod synthetic;
