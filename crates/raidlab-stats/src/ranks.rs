//! Ranks with ties, shared by the rank tests.

/// Mid-ranks (from 1) of the values, in their order, and Σ(t³ − t) over the groups of ties.
pub(crate) fn mid_ranks(values: &[f64]) -> (Vec<f64>, f64) {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_unstable_by(|&i, &j| values[i].total_cmp(&values[j]));
    let mut ranks = vec![0.0; values.len()];
    let mut tie_term = 0.0;
    let mut start = 0;
    while start < order.len() {
        let mut end = start + 1;
        // Comparison by value: 0.0 and −0.0 are a tie.
        while end < order.len() && values[order[end]] == values[order[start]] {
            end += 1;
        }
        let shared = 0.5 * (start + 1 + end) as f64;
        for &i in &order[start..end] {
            ranks[i] = shared;
        }
        let t = (end - start) as f64;
        tie_term += t * t * t - t;
        start = end;
    }
    (ranks, tie_term)
}

#[cfg(test)]
mod tests {
    use super::mid_ranks;

    #[test]
    fn ties_share_the_mean_rank() {
        assert_eq!(
            mid_ranks(&[3.0, 1.0, 3.0, 0.0, -0.0]),
            (vec![4.5, 3.0, 4.5, 1.5, 1.5], 12.0)
        );
        assert_eq!(mid_ranks(&[]), (vec![], 0.0));
    }
}
