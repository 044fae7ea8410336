// SPDX-License-Identifier: Apache-2.0

// Package model represents the content of catalogs and the problem of one namespace. [Build] parses and indexes a
// catalog. [Read] creates a [Problem]: the visible catalogs, the Subscriptions with their candidates, the existing
// operators, and the providers of requirements. After that, only data that is looked up on demand is added.
package model

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

// Problem is the input of one resolution in the form that the search needs. It also caches the data that the searches
// looked up.
type Problem struct {
	In     *Input
	Policy Policy
	Group  *operatorsv1.OperatorGroup

	// Sources contains the visible catalogs with content, in order of preference.
	Sources []Source
	// Missing contains the visible catalogs without content.
	Missing  []Source
	Subs     []*Subscription
	named    map[string]*Subscription
	Existing []*CSV
	ByName   map[string]*CSV

	// subsOver are the Subscriptions with a current, by the package they follow.
	subsOver map[*PackageIndex][]*Subscription

	// pinned are the Subscriptions that version ranges hold.
	pinned []*Subscription

	// Blocked or Failure is the reason why the namespace cannot be resolved. Both are empty if the namespace can be
	// resolved.
	Blocked, Failure string

	Diagnostics []olmcore.Diagnostic
	Stats       Stats
	graph
}

// Source is a visible catalog.
type Source struct {
	Key      types.NamespacedName
	Priority int
	Content  *Catalog
	Problem  string
}

// Subscription is one Subscription of the namespace.
type Subscription struct {
	Object *v1alpha1.Subscription
	Index  int32
	// Source is the index of the Subscription's catalog in Problem.Sources, or NoSource.
	Source int32
	// Pkg is the package that the Subscription names. It is nil if the package does not exist.
	Pkg *PackageIndex
	// Current is the ClusterServiceVersion that status.installedCSV names. It is nil if no such ClusterServiceVersion
	// exists.
	Current *CSV
	Choice  *Choice
	// Upgrades contains the candidates except Current.
	Upgrades []*Entry
	// Impossible is OLM's message that no bundle matches the Subscription. ImpossibleCode is the kind of reason. Both are
	// empty if a bundle matches.
	Impossible     string
	ImpossibleCode HeldBackCode
	// Held is the reason why the installed operator remains, independently of the candidates. HeldText describes the
	// reason. Both are empty if there is no such reason.
	Held     HeldBackCode
	HeldText string
	// resumes is the existing version that an InstallPlan created and did not finish, nil for none. It replaces Current if
	// there is one.
	resumes *CSV
	// pins are the version ranges that hold it; invalidPin is why one cannot be read.
	pins       []pin
	invalidPin string
	// PinnedOut is the best candidate if a version range excludes that candidate. Otherwise it is nil.
	PinnedOut *Entry
}

// NoSource is the Source of a Subscription whose catalog is not visible.
const NoSource = -1

// Report adds a Diagnostic.
func (p *Problem) Report(severity olmcore.Severity, reason string, target olmcore.Ref, path, format string, args ...any) {
	p.Diagnostics = append(p.Diagnostics, olmcore.Diagnostic{
		Severity: severity, Reason: reason, Target: target, Path: path, Message: fmt.Sprintf(format, args...),
	})
}

// SubscriptionRef returns a reference to a Subscription of the namespace.
func (p *Problem) SubscriptionRef(name string) olmcore.Ref {
	return operatorsRef(v1alpha1.SubscriptionKind, p.In.Namespace, name)
}

// CSVRef returns a reference to a ClusterServiceVersion of the namespace.
func (p *Problem) CSVRef(name string) olmcore.Ref {
	return operatorsRef(v1alpha1.ClusterServiceVersionKind, p.In.Namespace, name)
}

func catalogRef(key types.NamespacedName) olmcore.Ref {
	return operatorsRef(v1alpha1.CatalogSourceKind, key.Namespace, key.Name)
}

func operatorsRef(kind, namespace, name string) olmcore.Ref {
	return olmcore.Ref{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: kind, Namespace: namespace, Name: name}
}

// Read converts an Input into a Problem. If the namespace cannot be resolved, Problem.Blocked or Problem.Failure
// contains the reason.
func Read(in *Input) *Problem {
	p := &Problem{In: in, Policy: in.Policy}
	p.graph = newGraph()
	p.Blocked = readGroup(p)
	readSubscriptions(p)
	if p.Blocked == "" {
		p.Failure = readRest(p)
	}
	p.Stats.Reading = p.TakeSteps(workPerCall + workPerSubscription*len(p.Subs) + workPerCSV*len(p.Existing) + p.Stats.Candidates)
	return p
}

// readRest reads all but the OperatorGroups and the Subscriptions themselves.
func readRest(p *Problem) (failure string) {
	readCatalogs(p)
	if p.Policy.FailOnUnavailableCatalog && len(p.Missing) > 0 {
		return CatalogError(p.Missing)
	}
	readObjects(p)
	readCSVs(p)
	if p.Policy.FailOnInvalidBundle {
		for _, c := range p.Existing {
			if c.Error != "" {
				return fmt.Sprintf("error using catalogsource %s/@existing: %s", p.In.Namespace, c.Error)
			}
		}
	}
	if failure := readTransitions(p); failure != "" {
		return failure
	}
	readPins(p)
	readCandidates(p)
	return unusable(p)
}

// readGroup returns the text that blocks the namespace, "" when exactly one OperatorGroup is there.
//
// Source: operator-lifecycle-manager pkg/controller/operators/catalog, the check before resolution.
func readGroup(p *Problem) (blocked string) {
	found := 0
	for _, g := range p.In.OperatorGroups {
		if g != nil && g.Namespace == p.In.Namespace {
			found++
			p.Group = g
		}
	}
	if found != 1 {
		return fmt.Sprintf("found %d operatorGroups, expected 1", found)
	}
	return ""
}

const exclusionAnnotation = "olm.operatorframework.io/exclude-global-namespace-resolution"

// readCatalogs sorts the visible catalogs by preference: priority, then those of the namespace itself, then by name.
func readCatalogs(p *Problem) {
	exclude := p.Group.Annotations[exclusionAnnotation]
	if exclude != "" && exclude != "true" && exclude != "false" {
		p.Report(olmcore.Warning, ReasonUnknownExclusion, olmcore.RefOf(p.Group), "metadata.annotations",
			"the annotation %s has the value %q; only \"true\" hides global catalogs", exclusionAnnotation, exclude)
	}
	kept := make([]*CatalogState, 0, len(p.In.Catalogs))
	seen := make(map[types.NamespacedName]int, len(p.In.Catalogs))
	for i := range p.In.Catalogs {
		state := &p.In.Catalogs[i]
		if state.Key.Namespace != p.In.Namespace && (state.Key.Namespace != p.In.GlobalCatalogNamespace || exclude == "true") {
			continue
		}
		if at, twice := seen[state.Key]; twice {
			p.Report(olmcore.Warning, ReasonSkippedObject, catalogRef(state.Key), "",
				"CatalogSource %s is there twice; the one that says more counts", state.Key)
			if isPreferred(state, kept[at]) {
				kept[at] = state
			}
			continue
		}
		seen[state.Key] = len(kept)
		kept = append(kept, state)
	}
	for _, state := range kept {
		addSource(p, state)
	}
	slices.SortFunc(p.Sources, func(a, b Source) int { return compareSources(p, a, b) })
	slices.SortFunc(p.Missing, func(a, b Source) int { return compareSources(p, a, b) })
}

// isPreferred reports whether state a of a catalog is used rather than state b of the same catalog. A state with
// content is preferred, then one that is not stale, then the one with the higher priority. The other fields only make
// the choice independent of the order of the Input.
func isPreferred(a, b *CatalogState) bool {
	switch {
	case (a.Content != nil) != (b.Content != nil):
		return a.Content != nil
	case a.Stale != b.Stale:
		return b.Stale
	}
	return cmp.Or(
		cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.Content.Digest(), b.Content.Digest()), cmp.Compare(a.Problem, b.Problem),
	) < 0
}

func addSource(p *Problem, state *CatalogState) {
	s := Source{Key: state.Key, Priority: state.Priority, Content: state.Content, Problem: cmp.Or(state.Problem, "no content")}
	if s.Content != nil && state.Stale {
		if p.Policy.RefuseStaleContent {
			s.Content = nil
		} else {
			p.Report(olmcore.Info, ReasonStaleCatalog, catalogRef(s.Key), "",
				"the content of catalog %s is that of an earlier read: %s", s.Key, s.Problem)
		}
	}
	if s.Content == nil {
		p.Missing = append(p.Missing, s)
		p.Report(olmcore.Warning, ReasonCatalogUnavailable, catalogRef(s.Key), "", "catalog %s cannot be used: %s", s.Key, s.Problem)
		return
	}
	p.Sources = append(p.Sources, s)
}

func compareSources(p *Problem, a, b Source) int {
	if c := cmp.Compare(b.Priority, a.Priority); c != 0 {
		return c
	}
	if a.Key.Namespace != b.Key.Namespace {
		if a.Key.Namespace == p.In.Namespace {
			return -1
		}
		return 1
	}
	return cmp.Compare(a.Key.Name, b.Key.Name)
}

// readSubscriptions sorts the Subscriptions, the oldest first.
func readSubscriptions(p *Problem) {
	objects := make([]*v1alpha1.Subscription, 0, len(p.In.Subscriptions))
	for i, s := range p.In.Subscriptions {
		switch {
		case s == nil || s.Spec == nil:
			p.Report(olmcore.Warning, ReasonSkippedObject, olmcore.Ref{}, fmt.Sprintf("Subscriptions[%d]", i),
				"a Subscription without content is left out")
		case s.Namespace != p.In.Namespace:
			p.Report(olmcore.Warning, ReasonSkippedObject, olmcore.RefOf(s), "",
				"Subscription %s/%s is of another namespace and left out", s.Namespace, s.Name)
		default:
			objects = append(objects, s)
		}
	}
	slices.SortStableFunc(objects, func(a, b *v1alpha1.Subscription) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name),
			strings.Compare(string(a.UID), string(b.UID)))
	})
	p.named = make(map[string]*Subscription, len(objects))
	store := make([]Subscription, len(objects))
	p.Subs = make([]*Subscription, 0, len(objects))
	for i, s := range objects {
		if p.named[s.Name] != nil {
			p.Report(olmcore.Warning, ReasonSkippedObject, olmcore.RefOf(s), "", "Subscription %s is there twice; the first counts", s.Name)
			continue
		}
		p.named[s.Name] = &store[i]
		store[i] = Subscription{Object: s, Index: int32(len(p.Subs)), Source: NoSource}
		p.Subs = append(p.Subs, &store[i])
	}
}

// sourceOf returns the index of the catalog that a Subscription follows, NoSource when it is not visible.
func (p *Problem) sourceOf(spec *v1alpha1.SubscriptionSpec) int32 {
	key := CatalogKey(spec)
	return int32(slices.IndexFunc(p.Sources, func(s Source) bool { return s.Key == key }))
}

// MissingCatalog returns the catalog that a Subscription names if the catalog has no content. Otherwise, it returns
// nil.
func (p *Problem) MissingCatalog(s *Subscription) *Source {
	i := slices.IndexFunc(p.Missing, func(m Source) bool { return m.Key == CatalogKey(s.Object.Spec) })
	if i < 0 {
		return nil
	}
	return &p.Missing[i]
}

// PackagesFor returns the names of the packages of a Subscription's catalog, sorted.
func (p *Problem) PackagesFor(s *Subscription) []string {
	if s.Source == NoSource {
		return nil
	}
	return p.Sources[s.Source].Content.Packages()
}

// Identifier returns OLM's identifier of an entry.
func (p *Problem) Identifier(r Ref) string {
	if r.Source == ExistingSource {
		return "@existing/" + p.In.Namespace + "//" + r.Entry.Name
	}
	key := p.Sources[r.Source].Key
	return key.Name + "/" + key.Namespace + "/" + r.Entry.Channel.Name + "/" + r.Entry.Name
}

// SubscriptionNamed returns the Subscription with the given name, or nil if it does not exist.
func (p *Problem) SubscriptionNamed(name string) *Subscription { return p.named[name] }

// unusable returns the text of a malformed channel or an invalid bundle that could be considered, when the policy lets
// it stop the namespace.
func unusable(p *Problem) string {
	if p.Policy.FailOnMalformedChannel && slices.ContainsFunc(p.Sources, func(s Source) bool { return len(s.Content.Malformed) > 0 }) {
		if text := malformedTouched(p); text != "" {
			return text
		}
	}
	mayBe := func(s Source) bool { return s.Content.Invalid > 0 || (s.Content.HasRules && p.In.CEL != nil) }
	if !p.Policy.FailOnInvalidBundle || !slices.ContainsFunc(p.Sources, mayBe) {
		return ""
	}
	for _, n := range p.Considered() {
		if n.Source == ExistingSource {
			continue
		}
		// OLM reads the requirements of deprecated bundles, too.
		text := p.Unreadable(n.Entry)
		if text != "" && text != noCompiler {
			return text
		}
	}
	return ""
}

// malformedTouched finds a malformed channel that a Subscription follows or that would offer something for a
// requirement.
func malformedTouched(p *Problem) string {
	for _, s := range p.Subs {
		spec := s.Object.Spec
		if s.Pkg == nil || (s.Current == nil && spec.StartingCSV != "") {
			continue
		}
		for _, ch := range s.Pkg.Channels {
			if ch.Malformed != "" && (spec.Channel == "" || spec.Channel == ch.Name) {
				return ch.Malformed
			}
		}
	}
	for _, n := range p.Considered() {
		for _, q := range n.Entry.Requirements {
			for i := range p.Sources {
				for _, ch := range p.Sources[i].Content.Malformed {
					if offersIn(p, ch, q) {
						return ch.Malformed
					}
				}
			}
		}
	}
	return ""
}

func offersIn(p *Problem, ch *ChannelIndex, q *Requirement) bool {
	for _, e := range ch.ByName {
		if p.Satisfies(e, q.Predicate) {
			return true
		}
	}
	return false
}

// CatalogError returns OLM's message about catalogs without content. Differs: the message lists several catalogs in
// sorted order.
func CatalogError(missing []Source) string {
	texts := make([]string, len(missing))
	for i, m := range missing {
		texts[i] = fmt.Sprintf("error using catalogsource %s/%s: %s", m.Key.Namespace, m.Key.Name, m.Problem)
	}
	slices.Sort(texts)
	if len(texts) == 1 {
		return texts[0]
	}
	return "[" + strings.Join(texts, ", ") + "]"
}

// Scope selects the part of a Problem to solve. It excludes Subscriptions that failed, but their installed operators
// must remain. It also excludes the rules for which Waive was called. The zero value selects the whole Problem.
type Scope struct {
	failed map[*Subscription]bool
	kept   map[*Entry]*Subscription
	waived map[RuleKey]bool
}

// Failed reports whether a Subscription is left out because it failed.
func (s *Scope) Failed(sub *Subscription) bool { return s.failed[sub] }

// Kept returns the failed Subscription of the installed operator e, if e must remain because that Subscription failed.
// Otherwise, it returns nil.
func (s *Scope) Kept(e *Entry) *Subscription { return s.kept[e] }

// Waived reports whether the search ignores a rule because Waive was called for it.
func (s *Scope) Waived(key RuleKey) bool { return s.waived[key] }

// Freestanding reports whether an existing operator must be part of every solution.
func (s *Scope) Freestanding(c *CSV) bool {
	return !c.LeftOut && (len(c.Owners) == 0 || s.kept[c.Entry] != nil)
}

// SideBySide reports whether a conflict between a and b is ignored. This is the case if both are existing operators,
// and at least one of them remains only because its Subscription failed.
func (s *Scope) SideBySide(a, b *Node) bool {
	if len(s.kept) == 0 || a.Source != ExistingSource || b.Source != ExistingSource {
		return false
	}
	return s.kept[a.Entry] != nil || s.kept[b.Entry] != nil
}

// LeaveOut marks a Subscription as failed. Its installed operator must remain.
func (s *Scope) LeaveOut(sub *Subscription) {
	if s.failed == nil {
		s.failed, s.kept = map[*Subscription]bool{}, map[*Entry]*Subscription{}
	}
	s.failed[sub] = true
	c := sub.Current
	if c == nil || c.LeftOut || s.kept[c.Entry] != nil {
		return
	}
	if !slices.ContainsFunc(c.Owners, func(other *Subscription) bool { return !s.failed[other] }) {
		s.kept[c.Entry] = sub
	}
}

// Waive makes the search ignore the given rules.
func (s *Scope) Waive(keys ...RuleKey) {
	if s.waived == nil {
		s.waived = map[RuleKey]bool{}
	}
	for _, key := range keys {
		s.waived[key] = true
	}
}

// Changes returns the number of operators that must remain because of failed Subscriptions, plus the number of rules
// that the search ignores because Waive was called for them.
func (s *Scope) Changes() int { return len(s.kept) + len(s.waived) }
