// The texts of notifications, and what else the worker of the page says.

/** They are part of `texts`. The worker has only these. */
export const notices = {
  name: "Countersign",
  waitingNotice: "A request is waiting.",
  testNotice: "This is a test. Notifications work.",
  keyChangedNotice: "Stop: a machine's key has changed.",
  dangerous: "Dangerous",
  open: "Open",
  reject: "Reject",
  dontAnswer: "Don't answer",
  shownInNotice: "one sentence, in a notification",
  rejectFailed: "Your answer did not arrive. Open the request.",
  rejectEnded: {
    answered: "Someone else answered first. Your answer did not count.",
    expired: "Its time had run out. Your answer was not needed.",
    withdrawn: "Its machine had taken it back. Your answer was not needed.",
    cancelled: "Whoever runs the relay had cancelled it. Your answer was not needed.",
  },
  answeredBefore: "This device has already answered this request. Nothing was sent.",
} as const;
