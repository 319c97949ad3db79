//! Questions with choices: as buttons for the person who answers, and the answer for the agent.

use countersign_wire::{decision::DecisionOutcome, limits::MAX_REQUESTED_ACTIONS, requested_actions};
use serde_json::{Map, Value};

use super::call::{Action, Question};

/// The buttons of a single question. More questions, or more choices than there may be buttons, are answered in words.
pub fn actions(action: &Action) -> Vec<requested_actions::Action> {
    let Action::Questions(questions) = action else { return Vec::new() };
    let [Question { choices, is_multiple: false, .. }] = questions.as_slice() else { return Vec::new() };
    if choices.len() > MAX_REQUESTED_ACTIONS || choices.iter().any(String::is_empty) {
        return Vec::new();
    }
    let button = |(number, choice): (usize, &String)| requested_actions::Action {
        id: id(number),
        caption: choice.clone(),
        style: None,
        decision: DecisionOutcome::Approve,
    };
    choices.iter().enumerate().map(button).collect()
}

fn id(number: usize) -> String {
    format!("choice-{}", number + 1)
}

/// The answers by the texts of the questions; `None` if nothing was chosen that answers all of them.
pub fn chosen(
    questions: &[Question],
    action: Option<&str>,
    words: Option<&str>,
) -> Option<Map<String, Value>> {
    let [question] = questions else { return None };
    let choice = |id_of: &str| (0..question.choices.len()).find(|number| id(*number) == id_of);
    let answer = match action {
        Some(action) => question.choices[choice(action)?].clone(),
        None => words.filter(|words| !words.trim().is_empty())?.to_owned(),
    };
    Some(Map::from_iter([(question.text.clone(), answer.into())]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(choices: usize) -> Question {
        let choices = (1..=choices).map(|number| format!("option {number}")).collect();
        Question { text: "Which?".to_owned(), choices, is_multiple: false }
    }

    #[test]
    fn a_single_question_has_buttons() {
        let buttons = actions(&Action::Questions(vec![question(3)]));
        assert_eq!(
            buttons.iter().map(|it| it.caption.as_str()).collect::<Vec<_>>(),
            ["option 1", "option 2", "option 3"]
        );
        requested_actions::RequestedActions::new(buttons).unwrap();
        let several = Question { is_multiple: true, ..question(3) };
        for questions in [vec![], vec![question(6)], vec![question(2), question(2)], vec![several]] {
            assert!(actions(&Action::Questions(questions)).is_empty());
        }
    }

    #[test]
    fn only_what_was_offered_or_said_is_an_answer() {
        let answer = |action, words| {
            let found = chosen(&[question(2)], action, words)?;
            Some(found["Which?"].as_str().unwrap().to_owned())
        };
        assert_eq!(answer(Some("choice-2"), None).as_deref(), Some("option 2"));
        assert_eq!(answer(None, Some("neither")).as_deref(), Some("neither"));
        for (action, words) in
            [(Some("choice-3"), None), (Some(""), Some("x")), (None, None), (None, Some(" "))]
        {
            assert_eq!(answer(action, words), None);
        }
        assert_eq!(chosen(&[question(2), question(2)], Some("choice-1"), Some("x")), None);
    }
}
