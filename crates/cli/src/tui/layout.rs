//! Where everything is on a screen of any size.

use ratatui::layout::Rect;

/// From this width on, the list is left of the review; below it, above.
const SIDE_BY_SIDE: u16 = 100;

/// Rows of an item in the list.
pub const ITEM_ROWS: u16 = 2;

/// What decides the layout.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// Columns of the terminal.
    pub width: u16,
    /// Rows of the terminal.
    pub height: u16,
    /// Items in the list.
    pub items: usize,
    /// Whether a request is open.
    pub is_reading: bool,
    /// Rows that the bar at the bottom needs.
    pub bar: u16,
    /// Rows that the head of the review needs.
    pub head: u16,
}

/// Areas of the screen. An area that has no place is empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Areas {
    pub title: Rect,
    /// The list with its own title.
    pub list: Rect,
    /// Between list and review.
    pub separator: Rect,
    /// The head of the review: what will happen.
    pub head: Rect,
    pub body: Rect,
    /// Questions, what became of an answer, and keys.
    pub bar: Rect,
}

/// Whether nothing can be shown safely.
pub fn is_too_small(width: u16, height: u16) -> bool {
    width < 40 || height < 10
}

/// The most rows that the bar can have: the title and two rows of the review stay.
pub fn most_bar_rows(height: u16) -> u16 {
    height.saturating_sub(3)
}

/// The columns of the review, which decide how high its head is.
pub fn review_width(width: u16) -> u16 {
    if width >= SIDE_BY_SIDE { width - list_width(width) - 2 } else { width }
}

fn list_width(width: u16) -> u16 {
    (width / 10 * 3).clamp(34, 60)
}

pub fn areas(shape: &Shape) -> Areas {
    let Shape { width, height, .. } = *shape;
    let bar_height = shape.bar.min(most_bar_rows(height));
    let middle = height.saturating_sub(1 + bar_height);
    let title = Rect::new(0, 0, width, 1.min(height));
    let bar = Rect::new(0, 1 + middle, width, bar_height);
    let (list, separator, review) = if width >= SIDE_BY_SIDE {
        let left = list_width(width);
        (
            Rect::new(0, 1, left, middle),
            Rect::new(left, 1, 2, middle),
            Rect::new(left + 2, 1, width - left - 2, middle),
        )
    } else {
        let wanted =
            u16::try_from(shape.items).unwrap_or(u16::MAX).saturating_mul(ITEM_ROWS).saturating_add(1);
        let limit = match shape.is_reading {
            // What is read has the place; a small screen has no list beside it.
            true if middle < 18 => 0,
            true => 5,
            false => (middle / 2).max(3),
        };
        let rows = wanted.max(2).min(limit).min(middle);
        let line = u16::from(rows > 0 && rows < middle);
        (
            Rect::new(0, 1, width, rows),
            Rect::new(0, 1 + rows, width, line),
            Rect::new(0, 1 + rows + line, width, middle - rows - line),
        )
    };
    // At least half of the review is for its body.
    let head_height = shape.head.min(review.height / 2);
    Areas {
        title,
        list,
        separator,
        head: Rect { height: head_height, ..review },
        body: Rect { y: review.y + head_height, height: review.height - head_height, ..review },
        bar,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn areas_fill_every_screen_and_never_overlap() {
        for width in [1, 20, 40, 80, 99, 100, 200, 500] {
            for height in [1, 2, 8, 10, 24, 60, 200] {
                for (items, is_reading) in [(0, false), (1, true), (9, false), (9, true)] {
                    for (bar, head) in [(1, 0), (5, 3), (50, 50)] {
                        let areas = areas(&Shape { width, height, items, is_reading, bar, head });
                        let all =
                            [areas.title, areas.list, areas.separator, areas.head, areas.body, areas.bar];
                        let covered: u32 = all.iter().map(|area| area.area()).sum();
                        assert_eq!(
                            covered,
                            u32::from(width) * u32::from(height),
                            "{width}×{height} {areas:?}"
                        );
                        for (index, one) in all.iter().enumerate() {
                            assert!(one.right() <= width && one.bottom() <= height);
                            assert!(all[..index].iter().all(|other| !one.intersects(*other)));
                        }
                    }
                }
            }
        }
    }
}
