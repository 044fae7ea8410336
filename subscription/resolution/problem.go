// SPDX-License-Identifier: Apache-2.0

package resolution

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/olmcore"
)

// problem is one call's view of its input, and the memory of its searches.
type problem struct {
	in     *Input
	policy Policy
	group  *operatorsv1.OperatorGroup

	sources  []source // visible and available, most preferred first
	missing  []source // visible, without content
	subs     []*subscription
	existing []*existing
	byName   map[string]*existing

	// subsOver are the Subscriptions with a current, by the package they follow.
	subsOver map[*catalogPackage][]*subscription

	// failures are those of the Subscriptions that were left out, by name.
	failures map[string]*olmcore.ResolutionFailure

	// waived are requirements of operators that stay although their Subscription
	// failed: they are unmet as it is, and must not stop the others.
	waived map[ruleKey]bool

	diagnostics []olmcore.Diagnostic
	stats       Stats
	slow        slow
	graph
}

// slow turns off what makes a search quick and must not change its answer; tests
// compare.
type slow struct {
	chronological bool // go back one level at a time
	blind         bool // do not look ahead
	forgetful     bool // look up who meets a requirement each time
	eager         bool // look up all requirements before the search
}

// source is a visible catalog.
type source struct {
	key      types.NamespacedName
	priority int
	content  *Catalog
	problem  string
}

// subscription is one Subscription of the namespace.
type subscription struct {
	object *v1alpha1.Subscription
	index  int32
	source int32 // index of its catalog, or noSource
	// pkg is what it follows; nil when there is none.
	pkg *catalogPackage
	// current is what status.installedCSV names, nil when there is none.
	current *existing
	choice  *choice
	// upgrades are the candidates other than current.
	upgrades []*entry
	// impossible is OLM's text for why nothing matches.
	impossible     string
	impossibleCode HeldBackCode
	// held is why an installed operator stays whatever else there may be.
	held     HeldBackCode
	heldText string
	// target is what the solution gives it; its entry is nil while there is none.
	target ref
	// failed: left out of the search, because a core names it.
	failed bool
}

const noSource = -1

// newProblem reads the objects. It leaves the candidates to prepare.
func newProblem(in *Input) *problem {
	p := &problem{in: in, policy: in.Policy}
	p.graph.init()
	return p
}

func (p *problem) report(severity olmcore.Severity, reason string, target olmcore.Ref, path, format string, args ...any) {
	p.diagnostics = append(p.diagnostics, olmcore.Diagnostic{
		Severity: severity, Reason: reason, Target: target, Path: path, Message: fmt.Sprintf(format, args...),
	})
}

func (p *problem) subscriptionRef(name string) olmcore.Ref {
	return olmcore.Ref{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: v1alpha1.SubscriptionKind, Namespace: p.in.Namespace, Name: name}
}

func (p *problem) csvRef(name string) olmcore.Ref {
	return olmcore.Ref{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: v1alpha1.ClusterServiceVersionKind, Namespace: p.in.Namespace, Name: name}
}

func catalogRef(key types.NamespacedName) olmcore.Ref {
	return olmcore.Ref{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: v1alpha1.CatalogSourceKind, Namespace: key.Namespace, Name: key.Name}
}

// operatorGroup returns the text that blocks the namespace, "" when exactly one
// OperatorGroup is there.
//
// Source: operator-lifecycle-manager pkg/controller/operators/catalog, the check before resolution.
func (p *problem) operatorGroup() (blocked string) {
	found := 0
	for _, g := range p.in.OperatorGroups {
		if g != nil && g.Namespace == p.in.Namespace {
			found++
			p.group = g
		}
	}
	if found != 1 {
		return fmt.Sprintf("found %d operatorGroups, expected 1", found)
	}
	return ""
}

const exclusionAnnotation = "olm.operatorframework.io/exclude-global-namespace-resolution"

// catalogs sorts the visible catalogs by preference: priority, then those of the
// namespace itself, then by name.
func (p *problem) catalogs() {
	exclude := p.group.Annotations[exclusionAnnotation]
	if exclude != "" && exclude != "true" && exclude != "false" {
		p.report(olmcore.Warning, ReasonUnknownExclusion, olmcore.RefOf(p.group), "metadata.annotations", "the annotation %s has the value %q; only \"true\" hides global catalogs", exclusionAnnotation, exclude)
	}
	kept := make([]*CatalogState, 0, len(p.in.Catalogs))
	seen := make(map[types.NamespacedName]int, len(p.in.Catalogs))
	for i := range p.in.Catalogs {
		state := &p.in.Catalogs[i]
		if state.Key.Namespace != p.in.Namespace && (state.Key.Namespace != p.in.GlobalCatalogNamespace || exclude == "true") {
			continue
		}
		if at, twice := seen[state.Key]; twice {
			p.report(olmcore.Warning, ReasonSkippedObject, catalogRef(state.Key), "", "CatalogSource %s is there twice; the one that says more counts", state.Key)
			if compareStates(state, kept[at]) < 0 {
				kept[at] = state
			}
			continue
		}
		seen[state.Key] = len(kept)
		kept = append(kept, state)
	}
	for _, state := range kept {
		p.addSource(state)
	}
	slices.SortFunc(p.sources, p.compareSources)
	slices.SortFunc(p.missing, p.compareSources)
}

// compareStates decides between two states of one catalog, in whatever order they
// came.
func compareStates(a, b *CatalogState) int {
	no := func(is bool) int {
		if is {
			return 0
		}
		return 1
	}
	return cmp.Or(
		cmp.Compare(no(a.Content != nil), no(b.Content != nil)), cmp.Compare(no(!a.Stale), no(!b.Stale)), cmp.Compare(b.Priority, a.Priority),
		cmp.Compare(a.Content.Digest(), b.Content.Digest()), cmp.Compare(a.Problem, b.Problem),
	)
}

func (p *problem) addSource(state *CatalogState) {
	s := source{key: state.Key, priority: state.Priority, content: state.Content, problem: cmp.Or(state.Problem, "no content")}
	if s.content != nil && state.Stale {
		if p.policy.RefuseStaleContent {
			s.content = nil
		} else {
			p.report(olmcore.Info, ReasonStaleCatalog, catalogRef(s.key), "", "the content of catalog %s is that of an earlier read: %s", s.key, s.problem)
		}
	}
	if s.content == nil {
		p.missing = append(p.missing, s)
		p.report(olmcore.Warning, ReasonCatalogUnavailable, catalogRef(s.key), "", "catalog %s cannot be used: %s", s.key, s.problem)
		return
	}
	p.sources = append(p.sources, s)
}

func (p *problem) compareSources(a, b source) int {
	if c := cmp.Compare(b.priority, a.priority); c != 0 {
		return c
	}
	if a.key.Namespace != b.key.Namespace {
		if a.key.Namespace == p.in.Namespace {
			return -1
		}
		return 1
	}
	return cmp.Compare(a.key.Name, b.key.Name)
}

// subscriptions sorts the Subscriptions, the oldest first.
func (p *problem) subscriptions() {
	objects := make([]*v1alpha1.Subscription, 0, len(p.in.Subscriptions))
	for i, s := range p.in.Subscriptions {
		switch {
		case s == nil || s.Spec == nil:
			p.report(olmcore.Warning, ReasonSkippedObject, olmcore.Ref{}, fmt.Sprintf("Subscriptions[%d]", i), "a Subscription without content is left out")
		case s.Namespace != p.in.Namespace:
			p.report(olmcore.Warning, ReasonSkippedObject, olmcore.RefOf(s), "", "Subscription %s/%s is of another namespace and left out", s.Namespace, s.Name)
		default:
			objects = append(objects, s)
		}
	}
	slices.SortStableFunc(objects, func(a, b *v1alpha1.Subscription) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name), strings.Compare(string(a.UID), string(b.UID)))
	})
	seen := make(map[string]bool, len(objects))
	store := make([]subscription, len(objects))
	p.subs = make([]*subscription, 0, len(objects))
	for i, s := range objects {
		if seen[s.Name] {
			p.report(olmcore.Warning, ReasonSkippedObject, olmcore.RefOf(s), "", "Subscription %s is there twice; the first counts", s.Name)
			continue
		}
		seen[s.Name] = true
		store[i] = subscription{object: s, index: int32(len(p.subs)), source: noSource}
		p.subs = append(p.subs, &store[i])
	}
}

// sourceOf returns the index of a visible catalog, and whether it is known to
// be there without content.
func (p *problem) sourceOf(key types.NamespacedName) (index int32, unavailable *source) {
	for i := range p.sources {
		if p.sources[i].key == key {
			return int32(i), nil
		}
	}
	for i := range p.missing {
		if p.missing[i].key == key {
			return noSource, &p.missing[i]
		}
	}
	return noSource, nil
}

// identifier is how OLM names an entry.
func (p *problem) identifier(r ref) string {
	if r.source == existingSource {
		return "@existing/" + p.in.Namespace + "//" + r.entry.name
	}
	key := p.sources[r.source].key
	return key.Name + "/" + key.Namespace + "/" + r.entry.channel.name + "/" + r.entry.name
}
