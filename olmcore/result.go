// SPDX-License-Identifier: Apache-2.0

package olmcore

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/olmcore/olm/internal/checkpoint"
	"github.com/olmcore/olm/internal/printable"
)

// Result is the result of a reconcile function: the writes to make, and the state changes and problems to report. The
// zero Result means converged: write nothing, and wait for the next change.
type Result struct {
	// Actions contains the writes to make, in the order in which to run them. It contains at most one for each object.
	Actions []Action
	// Transitions contains the state changes since the recorded state, oldest first.
	Transitions []Transition
	// Diagnostics contains what is blocked, inconsistent or repaired.
	Diagnostics []Diagnostic
	// RequeueAfter is the time from the Input's Now to the next deadline. 0 means that no deadline is pending.
	RequeueAfter time.Duration
}

// Empty reports whether there is nothing to write and nothing to report. A pending deadline does not count.
func (r Result) Empty() bool {
	return len(r.Actions) == 0 && len(r.Transitions) == 0 && len(r.Diagnostics) == 0
}

// Requeue sets RequeueAfter to d if d is earlier than the pending deadline, or if none is pending. A d of 0 or less
// changes nothing.
func (r *Result) Requeue(d time.Duration) {
	if d > 0 && (r.RequeueAfter == 0 || d < r.RequeueAfter) {
		r.RequeueAfter = d
	}
}

// And returns a Result with the parts of r and of the others, in this order. Its RequeueAfter is the earliest deadline.
// It changes none of them.
func (r Result) And(others ...Result) Result {
	// append copies a clipped slice, so it never writes to the array of r.
	r.Actions = slices.Clip(r.Actions)
	r.Transitions = slices.Clip(r.Transitions)
	r.Diagnostics = slices.Clip(r.Diagnostics)
	for _, other := range others {
		r.Actions = append(r.Actions, other.Actions...)
		r.Transitions = append(r.Transitions, other.Transitions...)
		r.Diagnostics = append(r.Diagnostics, other.Diagnostics...)
		r.Requeue(other.RequeueAfter)
	}
	return r
}

// Nearest returns the earliest of several deadlines, or 0 if none is pending. Each is the time until the deadline. 0 or
// less means no deadline.
func Nearest(deadlines ...time.Duration) time.Duration {
	var r Result
	for _, d := range deadlines {
		r.Requeue(d)
	}
	return r.RequeueAfter
}

// Certainty is how well the observations prove a Transition.
type Certainty string

// Certainties, strongest first.
const (
	// CertaintyObserved means that the new state itself was observed.
	CertaintyObserved Certainty = "Observed"
	// CertaintyProven means that recorded fields and the state graph prove the Transition.
	CertaintyProven Certainty = "Proven"
	// CertaintyInferred means that recorded fields strongly suggest the Transition.
	CertaintyInferred Certainty = "Inferred"
	// CertaintyAssumed means that only the state graph suggests the Transition.
	CertaintyAssumed Certainty = "Assumed"
)

// Bound is how the time of a Transition relates to the actual time.
type Bound string

// Bounds of a time.
const (
	// Exact means that it happened at that time, to the second.
	Exact Bound = "Exact"
	// NotBefore means that it happened at that time or later.
	NotBefore Bound = "NotBefore"
	// NotAfter means that it happened at that time or earlier.
	NotAfter Bound = "NotAfter"
	// Unbounded means that the time is unknown. At is zero.
	Unbounded Bound = ""
)

// Transition is one edge that an object's state machine took.
type Transition struct {
	// Target is the object whose state changed.
	Target Ref `json:"target"`
	// Type names the state machine or the condition, e.g. "Phase".
	Type string `json:"type,omitempty"`
	From string `json:"from"`
	To   string `json:"to"`
	// Status is the condition status of the new state, if it has one.
	Status  metav1.ConditionStatus `json:"status,omitempty"`
	Reason  string                 `json:"reason,omitempty"`
	Message string                 `json:"message,omitempty"`
	// At is the time that the objects contain, or the Input's Now if they contain none. Bound is its relation to the
	// actual time.
	At        metav1.Time `json:"at"`
	Bound     Bound       `json:"bound,omitempty"`
	Certainty Certainty   `json:"certainty"`
	// OutOfBand is true for an edge that no controller takes, because a user changed the object.
	OutOfBand bool `json:"outOfBand,omitempty"`
}

// String returns the edge in one line, without its object and time:
//
//	CONNECTING -> READY (PodReady)
//	Phase none -> Installing (Approved) inferred
//
// The type comes first if there is one. An empty state is printed as "none". A certainty other than Observed comes
// last.
func (t Transition) String() string {
	text := cmp.Or(t.From, "none") + " -> " + cmp.Or(t.To, "none")
	if t.Type != "" {
		text = t.Type + " " + text
	}
	if t.Reason != "" {
		text += " (" + t.Reason + ")"
	}
	if t.Certainty != CertaintyObserved && t.Certainty != "" {
		text += " " + strings.ToLower(string(t.Certainty))
	}
	return text
}

// Severity is the severity of a Diagnostic.
type Severity string

// Severities.
const (
	Info    Severity = "Info"
	Warning Severity = "Warning"
	Error   Severity = "Error"
)

// Diagnostic explains a decision: what is blocked, inconsistent, repaired or unknown.
type Diagnostic struct {
	Severity Severity `json:"severity"`
	// Reason is a CamelCase constant of the package that reports the Diagnostic.
	Reason string `json:"reason"`
	// Message is one sentence for a person.
	Message string `json:"message"`
	// Target is the object that the Diagnostic is about.
	Target Ref `json:"target"`
	// Path is the field that it is about, for example "spec.image". It is empty for the whole object.
	Path string `json:"path,omitempty"`
}

// Diagnose returns a Diagnostic about an object, or about one of its fields if path is not empty. format and args make
// the message.
func Diagnose(severity Severity, reason string, target Ref, path, format string, args ...any) Diagnostic {
	message := printable.Text(fmt.Sprintf(format, args...))
	return Diagnostic{Severity: severity, Reason: reason, Message: message, Target: target.Unversioned(), Path: path}
}

// Moved returns the Transition of an edge that a reconcile function takes now.
func Moved(target Ref, machine, from, to string, now time.Time) Transition {
	return Transition{
		Target: target.Unversioned(), Type: machine, From: from, To: to,
		At: Timestamp(now), Bound: Exact, Certainty: CertaintyObserved,
	}
}

// ReasonHistoryGap is the reason of a Diagnostic about unknown past states. No package invents a state to fill the gap.
const ReasonHistoryGap = "HistoryGap"

// ClockTolerance is the maximum difference between the clocks of two managers, or of a manager and the API server. If
// the difference is not larger, no certificate is used before clients trust it, and two managers agree on every status.
// A difference can shorten or prolong grace periods. docs/running.md lists which.
const ClockTolerance = 60 * time.Second

// Timestamp converts a time to the form that objects contain: whole seconds in UTC. metav1.Time loses fractions of a
// second when it is serialized, so a later comparison would find a difference.
func Timestamp(t time.Time) metav1.Time {
	return metav1.NewTime(t.UTC().Truncate(time.Second))
}

// Backoff is a wait that doubles with each failed attempt. It is Base after the first attempt, and never more than Max.
type Backoff struct{ Base, Max time.Duration }

// After returns the wait after a number of consecutive failed attempts. A number below 1 counts as 1.
func (b Backoff) After(tries int) time.Duration {
	steps := wait.Backoff{Duration: b.Base, Factor: 2, Cap: b.Max, Steps: 62}
	next := min(b.Base, b.Max)
	for range min(max(1, tries), steps.Steps) {
		next = min(steps.Step(), b.Max)
	}
	return next
}

// Graph is a state graph. It contains every edge that a state machine can take, in the order in which an object usually
// takes them. No other edge occurs.
type Graph[S ~string] []Edge[S]

// Edge is one edge of a Graph.
type Edge[S ~string] struct {
	From, To S
	// By is the name of the rule that takes the edge. It may be empty.
	By string
}

// Allows reports whether a state may directly follow another.
func (g Graph[S]) Allows(from, to S) bool {
	return slices.ContainsFunc(g, func(e Edge[S]) bool { return e.From == from && e.To == to })
}

// Outcome contains the Result of a reconcile function, and a Checkpoint that the caller passes to the next call.
type Outcome struct {
	Result
	// Checkpoint makes the next call cheap when nothing changed; nil when there is something to do.
	Checkpoint *Checkpoint
}

// Checkpoint records an Input for which a reconcile function had nothing to do: the identity and resourceVersion of
// every object, all other values of the Input, and the time until which the answer stands. If the caller passes it back
// in the next Input for the same key, the function compares versions and returns, regardless of the size of the
// objects. A Checkpoint is opaque, contains no objects, and can be shared and kept. With a nil Checkpoint the result is
// the same.
type Checkpoint = checkpoint.Checkpoint
