//! Charts in terminals of all widths.
use super::*;
use crate::report::document::{Axis, Bar, BarGroup, Point};

fn bar_chart(names: &[&str], series: &[&str]) -> Chart {
    let group = |(number, name): (usize, &&str)| {
        let bars = series.iter().enumerate().map(|(other, _)| {
            let value = 100.0 * (number + 1) as f64 + other as f64;
            Bar {
                value: Some(value),
                interval: Some((value - 1.5, value + 1.5)),
                note: None,
            }
        });
        BarGroup {
            label: (*name).to_owned(),
            bars: bars.collect(),
        }
    };
    Chart::Bars(BarChart {
        id: "x".to_owned(),
        title: "bonnie: Sequential throughput".to_owned(),
        description: String::new(),
        intervals: None,
        axis: "MiB/s, mean of the runs".to_owned(),
        series: series.iter().map(|s| (*s).to_owned()).collect(),
        groups: names.iter().enumerate().map(group).collect(),
    })
}

/// A hard disk beside a solid-state one: its bar would be less than an eighth of a column.
#[test]
fn what_is_far_apart_stands_along_a_logarithmic_axis() {
    let bar = |value: f64| Bar {
        value: Some(value),
        interval: None,
        note: None,
    };
    let Chart::Bars(mut chart) = bar_chart(&["raid5", "mirror", "solid"], &["read", "write"])
    else {
        unreachable!()
    };
    let values = [(8.2, 2.7), (4.24, 2.93), (1743.0, 1768.0)];
    for (group, (read, write)) in chart.groups.iter_mut().zip(values) {
        group.bars = vec![bar(read), bar(write)];
    }
    assert_eq!(chart.decades(), Some((0, 4)));
    // No error bar is cut off at the end of the axis; one that reaches zero begins at its beginning.
    for (interval, decades) in [((0.5, 12_000.0), (-1, 5)), ((-1.0, 9.0), (0, 4))] {
        let mut wide = chart.clone();
        wide.groups[0].bars[0].interval = Some(interval);
        assert_eq!(wide.decades(), Some(decades));
    }
    let chart = Chart::Bars(chart);
    insta::assert_snapshot!(render(&chart, 60, false), @r"
    bonnie: Sequential throughput (MiB/s, mean of the runs,
    logarithmic)
    raid5  read           ● 8.20
           write     ● 2.70
    mirror read        ● 4.24
           write      ● 2.93
    solid  read                                  ● 1743
           write                                 ● 1768
    ");
    insta::assert_snapshot!(render(&chart, 24, true), @r"
    bonnie: Sequential
    throughput (MiB/s, mean
    of the runs,
    logarithmic)
    raid5
      read    o 8.20
      write  o 2.70
    mirror
      read    o 4.24
      write  o 2.93
    solid
      read          o 1743
      write         o 1768
    ");
    let near = bar_chart(&["raid5", "mirror"], &["read"]);
    assert!(!render(&near, 60, false).contains("logarithmic"));
}

fn line_chart(names: &[&str], scale: Scale) -> Chart {
    let axis = |label: &str, scale| Axis {
        label: label.to_owned(),
        scale,
    };
    let points = (0..100).map(|i| Point {
        x: 512.0 * f64::from(1 << (i % 12)),
        y: 1000.0 + f64::from(i),
        interval: None,
    });
    let points: Vec<Point> = points.collect();
    let series = names.iter().map(|name| Series {
        name: (*name).to_owned(),
        points: points.clone(),
    });
    Chart::Lines(LineChart {
        id: "x".to_owned(),
        title: "tiobench: read against block size".to_owned(),
        description: String::new(),
        x: axis("block size", scale),
        y: axis("read, MiB/s", Scale::Linear),
        series: series.collect(),
    })
}

/// However narrow the terminal and long the names.
#[test]
fn charts_are_as_wide_as_the_terminal() {
    let names = [
        "raid5",
        "raid10-f2, chunk 512KiB, rebuilding 1",
        "/mnt/a-name-without-any-space-that-is-longer-than-a-line",
    ];
    let charts = [
        bar_chart(&names, &["read", "write"]),
        bar_chart(&names, &["read"]),
        bar_chart(
            &names[..1],
            &["a series with a name of more than forty letters", "b"],
        ),
        line_chart(&names, Scale::Log2),
        line_chart(&names, Scale::Linear),
    ];
    for width in [40, 50, 60, 80, 120] {
        for chart in &charts {
            for ascii in [false, true] {
                let text = render(chart, width, ascii);
                for line in text.lines() {
                    assert!(width_of(line) <= width, "{width}: {line}\n{text}");
                }
                // Nothing is lost of what is told.
                let text: String = text.split_whitespace().collect();
                for name in names[..1].iter().chain(&["MiB/s"]) {
                    assert!(text.contains(name), "{width}: {text}");
                }
            }
        }
    }
}

#[test]
fn a_bar_below_its_name() {
    let text = render(
        &bar_chart(&["raid10-f2, chunk 512KiB", "raid5"], &["read", "write"]),
        40,
        true,
    );
    insta::assert_snapshot!(text, @r"
    bonnie: Sequential throughput (MiB/s,
    mean of the runs)
    raid10-f2, chunk 512KiB
      read  ##### 100.0 [98.5, 101.5]
      write ###### 101.0 [99.5, 102.5]
    raid5
      read  ########### 200.0 [198.5, 201.5]
      write ########### 201.0 [199.5, 202.5]
    ");
}
