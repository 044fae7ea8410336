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

	"github.com/olmcore/olm/internal/printable"
)

// Result is what a reconcile function asks for and has to say. The zero Result means: converged, write nothing, wait
// for the next change.
type Result struct {
	// Actions are the writes to make, in the order to run them; at most one for each object.
	Actions []Action
	// Transitions are the state changes since the recorded state, oldest first.
	Transitions []Transition
	// Diagnostics say what blocks, what is inconsistent, what was repaired.
	Diagnostics []Diagnostic
	// RequeueAfter is the time from the Input's Now to the next deadline; 0 means that no deadline is pending.
	RequeueAfter time.Duration
}

// Empty reports whether nothing is asked for and nothing is said; a pending deadline alone is still empty.
func (r Result) Empty() bool {
	return len(r.Actions) == 0 && len(r.Transitions) == 0 && len(r.Diagnostics) == 0
}

// Requeue lowers RequeueAfter to d when d is the nearer deadline. Values of 0 and below are no deadline and change
// nothing.
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

// Nearest returns the nearest of some deadlines, each the time until it; 0 and below are none. 0: none is pending.
func Nearest(deadlines ...time.Duration) time.Duration {
	var r Result
	for _, d := range deadlines {
		r.Requeue(d)
	}
	return r.RequeueAfter
}

// Certainty says how much the observations prove of a Transition.
type Certainty string

// Certainties, strongest first.
const (
	// CertaintyObserved: the new state itself was seen.
	CertaintyObserved Certainty = "Observed"
	// CertaintyProven: it follows from recorded fields and the state graph.
	CertaintyProven Certainty = "Proven"
	// CertaintyInferred: recorded fields strongly suggest it.
	CertaintyInferred Certainty = "Inferred"
	// CertaintyAssumed: only the state graph says so.
	CertaintyAssumed Certainty = "Assumed"
)

// Bound says how a Transition's time relates to the true one.
type Bound string

// Bounds of a time.
const (
	// Exact: it happened at that time, to the second.
	Exact Bound = "Exact"
	// NotBefore: it happened then or later.
	NotBefore Bound = "NotBefore"
	// NotAfter: it happened then or earlier.
	NotAfter Bound = "NotAfter"
	// Unbounded: nothing is known about the time; At is zero.
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
	// Status is the condition status of the new state, where it has one.
	Status  metav1.ConditionStatus `json:"status,omitempty"`
	Reason  string                 `json:"reason,omitempty"`
	Message string                 `json:"message,omitempty"`
	// At is the time that the objects give, else the Input's Now; Bound says what it bounds.
	At        metav1.Time `json:"at"`
	Bound     Bound       `json:"bound,omitempty"`
	Certainty Certainty   `json:"certainty"`
	// OutOfBand marks an edge that no controller takes: a user edited the object.
	OutOfBand bool `json:"outOfBand,omitempty"`
}

// String returns the edge in one line, without its object and time:
//
//	CONNECTING -> READY (PodReady)
//	Phase none -> Installing (Approved) inferred
//
// Type stands in front where there is one, an empty state is "none", and a certainty other than Observed stands at the
// end.
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

// Severity grades a Diagnostic.
type Severity string

// Severities.
const (
	Info    Severity = "Info"
	Warning Severity = "Warning"
	Error   Severity = "Error"
)

// Diagnostic explains a decision: what blocks, what is inconsistent, what was repaired, what cannot be known.
type Diagnostic struct {
	Severity Severity `json:"severity"`
	// Reason is a CamelCase constant of the package that says it.
	Reason string `json:"reason"`
	// Message is one sentence for a person.
	Message string `json:"message"`
	// Target is the object it is about.
	Target Ref `json:"target"`
	// Path is the field it is about, e.g. "spec.image"; empty for the whole object.
	Path string `json:"path,omitempty"`
}

// Diagnose returns a Diagnostic about an object, or a field of it. format and args make the message.
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

// ReasonHistoryGap is the Diagnostic reason for a hole in what can be known about past states. No package invents a
// state to fill it.
const ReasonHistoryGap = "HistoryGap"

// ClockTolerance is how far the clocks of two managers, and those of a manager and the API server, may differ. Within
// it no certificate is used before clients trust it, and two managers agree on every status. A clock can shorten or
// prolong grace periods; docs/running.md says which.
const ClockTolerance = 60 * time.Second

// Timestamp converts an instant to the form that objects carry: whole seconds, UTC. metav1.Time loses the rest on the
// wire, and the next comparison would differ.
func Timestamp(t time.Time) metav1.Time {
	return metav1.NewTime(t.UTC().Truncate(time.Second))
}

// Backoff is a wait that doubles with each failed try: Base after the first, never more than Max.
type Backoff struct{ Base, Max time.Duration }

// After returns the wait after a number of tries in a row; 0 and below count as one.
func (b Backoff) After(tries int) time.Duration {
	steps := wait.Backoff{Duration: b.Base, Factor: 2, Cap: b.Max, Steps: 62}
	next := min(b.Base, b.Max)
	for range min(max(1, tries), steps.Steps) {
		next = min(steps.Step(), b.Max)
	}
	return next
}

// Graph is a state graph: every edge that a state machine can take, in the order of a life. No other edge occurs.
type Graph[S ~string] []Edge[S]

// Edge is one edge of a Graph.
type Edge[S ~string] struct {
	From, To S
	// By names the rule that takes it, in the words of the package; may be empty.
	By string
}

// Allows reports whether a state may follow another at once.
func (g Graph[S]) Allows(from, to S) bool {
	return slices.ContainsFunc(g, func(e Edge[S]) bool { return e.From == from && e.To == to })
}

// Rule is one row of a decision table. S is the type of the states, F the type of the facts, which a rule only reads,
// and D the type of the decision, which a rule returns.
type Rule[S ~string, F, D any] struct {
	// Name says what the rule does, for example RequirementsNotMet. It appears in assessments, tests and state graphs.
	Name string
	// From are the states in which the rule applies, To the states that it leads to.
	From, To []S
	// Decide returns a decision. If decided is false, the next row is tried.
	Decide func(facts F) (decision D, decided bool)
}

// FirstDecision returns the decision of the first rule that applies in a state and decides, and the name of that rule.
// If no rule decides, it returns the zero decision and an empty name.
func FirstDecision[S ~string, F, D any](rules []Rule[S, F, D], state S, facts F) (decision D, rule string) {
	for _, r := range rules {
		if !slices.Contains(r.From, state) {
			continue
		}
		if decision, decided := r.Decide(facts); decided {
			return decision, r.Name
		}
	}
	return decision, ""
}

// GraphOf returns the state graph of rules, in the order of the states and the rules.
func GraphOf[S ~string, F, D any](states []S, rules []Rule[S, F, D]) (graph Graph[S]) {
	for _, from := range states {
		for _, r := range rules {
			for _, to := range r.To {
				edge := Edge[S]{From: from, To: to, By: r.Name}
				if slices.Contains(r.From, from) && !slices.Contains(graph, edge) {
					graph = append(graph, edge)
				}
			}
		}
	}
	return graph
}
