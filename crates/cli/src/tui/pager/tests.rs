//! What counts as shown, and where the cursor goes.

use super::*;
use crate::tui::{
    document::{Care, Line, Section},
    kind::Kind,
};

fn document(first: &[&str], files: &[(usize, bool)]) -> Document {
    let line = |text: String| Line::shown(Kind::Text, text);
    let main = Section {
        title: None,
        lines: first.iter().map(|text| line((*text).to_owned())).collect(),
        is_folded: false,
    };
    let file = |(index, (lines, is_folded)): (usize, &(usize, bool))| Section {
        title: Some(format!("file {index}")),
        lines: (0..*lines).map(|number| line(format!("line {number} of {index}"))).collect(),
        is_folded: *is_folded,
    };
    Document {
        headline: "h".to_owned(),
        chips: String::new(),
        care: Care::Ordinary,
        sections: [main].into_iter().chain(files.iter().enumerate().map(file)).collect(),
    }
}

fn texts(pager: &Pager) -> Vec<&str> {
    pager.rows().iter().map(|row| row.text.as_str()).collect()
}

fn counts(pager: &Pager) -> (usize, usize) {
    (pager.shown().files, pager.shown().lines)
}

#[test]
fn a_line_that_is_higher_than_the_screen_counts_when_all_of_it_was_on_it() {
    let long = "x".repeat(100);
    let mut pager = Pager::new(document(&["a", &long, "z"], &[]));
    pager.resize(10 + GUTTER, 4);
    assert_eq!(counts(&pager), (0, 1), "the beginning of the long line is not the line");
    pager.to_end();
    assert_eq!(counts(&pager), (0, 2), "its end alone is not the line either");
    pager.to_start();
    for _ in 0..9 {
        pager.scroll(1);
    }
    assert_eq!(counts(&pager), (0, 2));
    pager.scroll(1);
    assert_eq!(counts(&pager), (0, 3), "row by row it was all there");
}

#[test]
fn going_by_pages_leaves_nothing_out() {
    for height in 1..12 {
        let mut pager = Pager::new(document(&["a"; 57], &[(23, false)]));
        pager.resize(20, height);
        for _ in 0..90 {
            pager.page(1);
        }
        assert_eq!(pager.shown().lines, 80, "{height} rows");
        for _ in 0..90 {
            pager.page(-1);
        }
        assert_eq!((pager.line(), texts(&pager)[0]), (1, "a"));
    }
}

#[test]
fn what_is_folded_is_not_shown_and_says_so() {
    let mut pager = Pager::new(document(&["a"], &[(2, true), (2, false)]));
    pager.resize(20, 10);
    assert_eq!(texts(&pager), ["a", "file 0", "file 1", "line 0 of 1", "line 1 of 1"]);
    assert_eq!((pager.rows()[1].mark, pager.rows()[2].mark), (Mark::Folded, Mark::Unfolded));
    assert_eq!(counts(&pager), (1, 3));
    assert!(!pager.toggle(), "the first section does not fold");
    pager.scroll(1);
    assert!(pager.toggle());
    assert_eq!(counts(&pager), (2, 5));
    assert!(pager.toggle());
    assert_eq!((counts(&pager), pager.rows().len()), ((2, 5), 5), "what was shown was shown");
}

#[test]
fn an_area_without_rows_shows_nothing() {
    let mut pager = Pager::new(document(&["a"], &[(2, false)]));
    for (width, height) in [(0, 10), (GUTTER, 10), (20, 0)] {
        pager.resize(width, height);
        pager.scroll(5);
        assert_eq!((counts(&pager), pager.rows().len()), ((0, 0), 0));
    }
}

#[test]
fn another_width_keeps_the_line() {
    let long = "y".repeat(200);
    let mut pager = Pager::new(document(&["a", &long, "b", "c"], &[]));
    pager.resize(13, 5);
    pager.to_end();
    pager.scroll(-1);
    let before = pager.line();
    for width in [40, 5, 200] {
        pager.resize(width, 5);
        assert_eq!(pager.line(), before);
        assert_eq!(pager.rows().iter().filter(|row| row.is_current).count(), 1);
    }
}
