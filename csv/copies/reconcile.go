// SPDX-License-Identifier: Apache-2.0

package copies

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/olmcore/olm/csv/internal/copied"
	"github.com/olmcore/olm/csv/internal/deployment"
	"github.com/olmcore/olm/csv/internal/group"
	"github.com/olmcore/olm/csv/internal/owned"
	"github.com/olmcore/olm/csv/internal/read"
	"github.com/olmcore/olm/csv/internal/refused"
	"github.com/olmcore/olm/olmcore"
)

const (
	// unreadPace is the time until the next call if a list was not read.
	unreadPace = 5 * time.Second
	// eventPace is how often the Event of disabled copies is checked. An API server deletes Events after an hour.
	eventPace = time.Hour
	// takenPace is how often a namespace is checked in which another ClusterServiceVersion has the name of a copy.
	takenPace = time.Minute
	// maxRefused is the number of rejected writes that have their own Diagnostic.
	maxRefused = 5
)

// Reconcile returns the creations, updates and deletions of all copies of one ClusterServiceVersion. If a list was not
// read, the copies that depend on it stay as they are. There is nothing to do if the Outcome contains only a Checkpoint
// or RequeueAfter. The error is an *olmcore.InputError.
//
// A new copy has no status until Reconcile observes it and writes the status. For a copy from Slim, the action writes
// the whole content. Its merge patch also removes what the copy has in addition.
//
// Source: operator-lifecycle-manager pkg/controller/operators/olm/operatorgroup.go, ensureCSVsInNamespaces, and
// operator.go, syncCopyCSV and syncGcCsv.
// Differs: copies are deleted if the original is uncopiable, has no targets or is being deleted. A copy whose label and
// annotation disagree is deleted too. An original that has the name of a copy is not changed.
func Reconcile(in Input) (Outcome, error) {
	return olmcore.Checkpointed(in.Now, in.Checkpoint, in.cover, in.validate, func() (olmcore.Result, error) { return decide(in) })
}

func decide(in Input) (res olmcore.Result, err error) {
	f := factsOf(in)
	if unread := f.unread(); len(unread) > 0 {
		res.Diagnostics = append(res.Diagnostics, olmcore.Diagnose(olmcore.Warning, ReasonNotObserved, f.ref, "",
			"what these lists would decide about copies stays as it is, as they were not read: %s", strings.Join(unread, ", ")))
		res.Requeue(unreadPace)
	}
	if !in.Sources.Complete || !in.Copies.Complete {
		return res, nil
	}
	res.Actions = append(f.lost(&res), f.deletions()...)
	if f.decided() {
		held, err := f.held(&res)
		if err != nil {
			return olmcore.Result{}, err
		}
		res.Actions = append(res.Actions, held...)
		res.Actions = append(res.Actions, f.event(&res)...)
	}
	slices.SortFunc(res.Actions, deployment.ByTarget)
	f.in.LastRun.ConflictsLast(res.Actions)
	return f.holdRejected(res), nil
}

// holdRejected returns the Result without the writes that the API server rejected a short time ago, and with
// Diagnostics about them.
func (f *facts) holdRejected(res olmcore.Result) olmcore.Result {
	due, rejected := refused.Due(res.Actions, f.in.LastRun, f.in.Now)
	res.Actions = due
	for i, w := range rejected {
		res.Requeue(w.RetryIn)
		if i < maxRefused {
			res.Diagnostics = append(res.Diagnostics, olmcore.Diagnose(olmcore.Warning, ReasonRefused, w.Target, "",
				"the API server refuses to %s it: %s", w.Verb, w.Message))
		}
	}
	if more := len(rejected) - maxRefused; more > 0 {
		res.Diagnostics = append(res.Diagnostics, olmcore.Diagnose(olmcore.Warning, ReasonRefused, f.ref, "",
			"the API server refuses to write %d more copies", more))
	}
	return res
}

// facts contains the classified objects of an Input. factsOf fills it once. Afterwards it is read-only.
type facts struct {
	in Input // as the caller passed it
	// ref references the original, also if it does not exist.
	ref olmcore.Ref
	// named is the ClusterServiceVersion with the key. source is the same if it is an original. Both may be nil.
	source, named *v1alpha1.ClusterServiceVersion
	// targets contains the namespaces that the operator watches. copiable is false if the original has no copies.
	targets  group.Targets
	copiable bool
	// noted contains the target namespaces in the annotation of the original.
	noted sets.Set[string]
	// toggle is the setting of the OLMConfig that disables copies.
	toggle copied.Toggle
	// leaving contains the names of the namespaces that are being deleted.
	leaving sets.Set[string]
	// there contains the ClusterServiceVersions with the same name in other namespaces, sorted by namespace.
	there []found
}

// found is a ClusterServiceVersion of another namespace that has the name of the original.
type found struct {
	*v1alpha1.ClusterServiceVersion
	// isCopy reports whether it is a copy of the original.
	isCopy bool
	// why is the cause to delete it, or the zero value if it stays.
	why olmcore.Cause
	// content describes the content of a slim copy. The content of a whole copy is only compared when it matters.
	content content
	slim    bool
}

// factsOf returns the facts of an Input.
func factsOf(in Input) *facts {
	f := &facts{in: in, leaving: sets.New[string](), there: make([]found, 0, len(in.Copies.Items))}
	f.named, _ = owned.Find(in.Sources.Items, in.Key.Namespace, in.Key.Name)
	f.ref = olmcore.Ref{
		APIVersion: v1alpha1.ClusterServiceVersionAPIVersion, Kind: v1alpha1.ClusterServiceVersionKind,
		Namespace: in.Key.Namespace, Name: in.Key.Name,
	}
	if f.named != nil {
		f.ref = olmcore.RefOf(f.named).Unversioned()
		if !f.named.IsCopied() {
			f.source = f.named
			g, _ := group.Alone(in.OperatorGroups.Items, in.Key.Namespace)
			f.targets, f.copiable = copied.Targets(f.source, g)
			noted, _ := group.AnnotatedTargets(f.source)
			f.noted = sets.New(noted...)
		}
	}
	config, _ := owned.Find(in.OLMConfigs.Items, "", copied.ConfigName)
	f.toggle = copied.ToggleOf(config, in.Config.ProtectedNamespaces)
	for _, n := range in.Namespaces.Items {
		if copied.IsLeaving(n) {
			f.leaving.Insert(n.Name)
		}
	}
	for _, c := range in.Copies.Items {
		if c.Name == in.Key.Name && c.Namespace != in.Key.Namespace {
			isCopy := copied.From(in.Key, c)
			content, slim := slimContent(c)
			f.there = append(f.there, found{c, isCopy, f.unjustified(c, isCopy), content, slim})
		}
	}
	slices.SortFunc(f.there, func(a, b found) int { return strings.Compare(a.Namespace, b.Namespace) })
	return f
}

// unread returns the names of the lists that matter and were not read.
func (f *facts) unread() []string {
	names := slices.Concat(
		read.Missing(f.in.Sources, "ClusterServiceVersions"),
		read.Missing(f.in.Copies, "ClusterServiceVersions of other namespaces"),
	)
	if f.source == nil {
		return names
	}
	names = append(names, read.Missing(f.in.OperatorGroups, "OperatorGroups")...)
	if f.copiable {
		names = append(names, read.Missing(f.in.Namespaces, "Namespaces")...)
	}
	if f.copiable && f.targets.All() {
		names = append(names, read.Missing(f.in.OLMConfigs, "OLMConfigs (whether copies are disabled)")...)
		if f.isToggled() {
			names = append(names, read.Missing(f.in.Events, "Events (whether there is one that says so)")...)
		}
	}
	return names
}

// decided reports whether all lists were read that the desired copies depend on.
func (f *facts) decided() bool {
	return f.copiable && f.in.OperatorGroups.Complete && f.in.Namespaces.Complete && (f.in.OLMConfigs.Complete || !f.targets.All())
}

// lost returns the deletion of a ClusterServiceVersion with the key that is marked as a copy without an original.
func (f *facts) lost(res *olmcore.Result) []olmcore.Action {
	c := f.named
	switch {
	case c == nil || f.source != nil || c.DeletionTimestamp != nil || copied.Home(c) != f.in.Key:
		return nil
	case !v1alpha1.IsCopied(c):
		res.Diagnostics = append(res.Diagnostics, olmcore.Diagnose(olmcore.Warning, ReasonUnmarked, f.ref, "status.reason",
			"its status says that it is a copy; neither label nor annotation says of what"))
		return nil
	}
	return []olmcore.Action{olmcore.DeleteOf(c, olmcore.Cause{
		Reason: ReasonMarksDisagree, Message: "label olm.copiedFrom and annotation olm.operatorNamespace name no original in another namespace",
	})}
}

// unjustified returns the cause to delete a copy. It is the zero value if the copy stays, is no copy, or is already
// being deleted, alone or with its namespace.
func (f *facts) unjustified(c *v1alpha1.ClusterServiceVersion, isCopy bool) (why olmcore.Cause) {
	if !isCopy || c.DeletionTimestamp != nil || f.leaving.Has(c.Namespace) {
		return why
	}
	for _, rule := range unjustified {
		if message := rule.broken(f, c); message != "" {
			return olmcore.Cause{Reason: rule.reason, Message: message}
		}
	}
	return why
}

// deletions returns the deletions of copies that should not exist.
func (f *facts) deletions() (actions []olmcore.Action) {
	for _, c := range f.there {
		if c.why.Reason != "" {
			actions = append(actions, olmcore.DeleteOf(c.ClusterServiceVersion, c.why))
		}
	}
	return actions
}

// unjustified is the table of reasons to delete a copy. To add a reason, add a row. broken returns a message, or an
// empty string if the reason does not apply.
var unjustified = []struct {
	reason string
	broken func(f *facts, c *v1alpha1.ClusterServiceVersion) string
}{
	{ReasonMarksDisagree, func(f *facts, c *v1alpha1.ClusterServiceVersion) string {
		if noted := c.Annotations[operatorsv1.OperatorGroupNamespaceAnnotationKey]; noted != f.in.Key.Namespace {
			return fmt.Sprintf("label olm.copiedFrom says %s, annotation olm.operatorNamespace %q", f.in.Key.Namespace, noted)
		}
		return ""
	}},
	{ReasonSourceGone, func(f *facts, _ *v1alpha1.ClusterServiceVersion) string {
		switch {
		case f.source == nil:
			return "ClusterServiceVersion " + f.in.Key.String() + " does not exist"
		case f.source.DeletionTimestamp != nil:
			return "ClusterServiceVersion " + f.in.Key.String() + " is being deleted"
		}
		return ""
	}},
	{ReasonSourceUncopiable, func(f *facts, _ *v1alpha1.ClusterServiceVersion) string {
		if f.source.IsUncopiable() {
			return fmt.Sprintf("ClusterServiceVersion %s is %s", f.in.Key, cmp.Or(string(f.source.Status.Reason), "without a phase"))
		}
		return ""
	}},
	{ReasonNotWatched, func(f *facts, c *v1alpha1.ClusterServiceVersion) string {
		if !f.noted.Has(metav1.NamespaceAll) && !f.noted.Has(c.Namespace) {
			return "the operator of ClusterServiceVersion " + f.in.Key.String() + " does not watch the namespace"
		}
		return ""
	}},
	{ReasonDisabled, func(f *facts, c *v1alpha1.ClusterServiceVersion) string {
		if f.copiable && !f.toggle.Keeps(f.targets.All(), c.Namespace) {
			return "OLMConfig cluster disables copies of operators that watch all namespaces"
		}
		return ""
	}},
}

// held returns the writes to the namespaces that should have a copy.
func (f *facts) held(res *olmcore.Result) (actions []olmcore.Action, err error) {
	namespaces := f.toggle.Namespaces(f.in.Key.Namespace, f.targets, f.in.Namespaces.Items)
	if len(namespaces) == 0 {
		return nil, nil // most operators watch only their own namespace
	}
	want, err := prototypeOf(f.source)
	if err != nil {
		return nil, &olmcore.InputError{Field: "Sources[0]", Problem: "cannot be encoded: " + err.Error()}
	}
	var stale []differing
	missing := olmcore.Cause{
		Reason: ReasonCopyMissing, Message: "the operator of ClusterServiceVersion " + f.in.Key.String() + " watches the namespace",
	}
	there := f.there
	for _, namespace := range namespaces {
		for len(there) > 0 && there[0].Namespace < namespace {
			there = there[1:]
		}
		if len(there) == 0 || there[0].Namespace != namespace {
			actions = append(actions, olmcore.CreateOf(want.in(namespace), missing))
			continue
		}
		switch have := &there[0]; {
		case !have.isCopy:
			res.Diagnostics = append(res.Diagnostics, olmcore.Diagnose(olmcore.Warning, ReasonNameTaken, f.ref, "",
				"ClusterServiceVersion %s/%s is no copy of it, so there is none in that namespace", namespace, f.in.Key.Name))
			res.Requeue(takenPace)
		case have.DeletionTimestamp == nil && have.why.Reason == "":
			d, differs, err := want.compare(have)
			if err != nil {
				return nil, err
			}
			if differs {
				stale = append(stale, d)
			}
		}
	}
	return append(actions, want.updates(stale)...), nil
}

// isToggled reports whether the OLMConfig sets disableCopiedCSVs. Only then an Event can exist.
func (f *facts) isToggled() bool {
	config, _ := owned.Find(f.in.OLMConfigs.Items, "", copied.ConfigName)
	return saysWhether(config)
}

func saysWhether(config *operatorsv1.OLMConfig) bool {
	return config != nil && config.Spec.Features != nil && config.Spec.Features.DisableCopiedCSVs != nil
}

// event creates or deletes the Event that reports disabled copies.
func (f *facts) event(res *olmcore.Result) []olmcore.Action {
	if !f.targets.All() || !f.isToggled() || !f.in.Events.Complete {
		return nil
	}
	have, exists := owned.Find(f.in.Events.Items, f.in.Key.Namespace, EventName(f.source))
	switch {
	case f.toggle.Disabled:
		res.Requeue(eventPace)
		if !exists {
			return []olmcore.Action{olmcore.CreateOf(newEvent(f.source, f.in.Now), olmcore.Cause{
				Reason: ReasonDisabled, Message: "the users of other namespaces do not see the operator",
			})}
		}
	case exists && isEventOf(f.source, have):
		return []olmcore.Action{olmcore.DeleteOf(have, olmcore.Cause{Reason: ReasonEnabled, Message: "copies are made again"})}
	}
	return nil
}

// EventName returns the name of the Event that reports on an original that its copies are disabled.
func EventName(c *v1alpha1.ClusterServiceVersion) string {
	suffix := olmcore.NameSuffix(10, string(c.UID), EventDisabledCopiedCSVs)
	const limit = 253 - len(".") - 10
	return strings.TrimRight(c.Name[:min(len(c.Name), limit)], "-.") + "." + suffix
}

// Source: operator-lifecycle-manager pkg/controller/operators/olm/operatorgroup.go, createCSVCopyingDisabledEvent.
func newEvent(c *v1alpha1.ClusterServiceVersion, now time.Time) *corev1.Event {
	at := olmcore.Timestamp(now)
	e := &corev1.Event{
		InvolvedObject: corev1.ObjectReference{
			APIVersion: v1alpha1.ClusterServiceVersionAPIVersion, Kind: v1alpha1.ClusterServiceVersionKind,
			Namespace: c.Namespace, Name: c.Name, UID: c.UID,
		},
		Reason: EventDisabledCopiedCSVs, Message: fmt.Sprintf("CSV copying disabled for %s/%s", c.Namespace, c.Name),
		Source: corev1.EventSource{Component: "operator-lifecycle-manager"}, Type: corev1.EventTypeWarning,
		FirstTimestamp: at, LastTimestamp: at, Count: 1,
	}
	e.Namespace, e.Name = c.Namespace, EventName(c)
	return e
}

func isEventOf(c *v1alpha1.ClusterServiceVersion, e *corev1.Event) bool {
	return e.Reason == EventDisabledCopiedCSVs && e.InvolvedObject.UID == c.UID && e.InvolvedObject.Kind == v1alpha1.ClusterServiceVersionKind
}
