// SPDX-License-Identifier: Apache-2.0

package csv

import (
	"cmp"
	"slices"
	"strings"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/olmcore/olm/csv/internal/group"
	"github.com/olmcore/olm/olmcore"
)

// api is an API that an operator provides. OperatorGroups list theirs in an
// annotation, as <Kind>.<version>.<group> with commas between.
type api struct{ kind, version, group string }

func (a api) String() string { return a.kind + "." + a.version + "." + a.group }

func (a api) hash() uint64 { return apiHash(a.kind, a.version, a.group) }

// isListed reports whether the annotation of a group lists the API.
func (a api) isListed(annotation string) bool {
	_, found := a.cutFrom(annotation)
	return found || a.isListedAnywhere(annotation)
}

// cutFrom looks for the API in an annotation that is sorted, as OLM and Group
// write it, and returns what comes after it. It halves what is left: a CSV with
// many APIs has a long one. In an annotation of any other order it may miss it.
func (a api) cutFrom(annotation string) (rest string, found bool) {
	for low, high := 0, len(annotation); low < high && a.kind != ""; {
		start := low + strings.LastIndexByte(annotation[low:low+(high-low)/2], ',') + 1
		end := high
		if i := strings.IndexByte(annotation[start:high], ','); i >= 0 {
			end = start + i
		}
		switch order := a.compareEntry(annotation[start:end]); {
		case order == 0:
			return annotation[min(end+1, len(annotation)):], true
		case order > 0:
			low = end + 1
		default:
			high = start - 1
		}
	}
	return "", false
}

// cutNext is cutFrom for an annotation that may go on with the API: many CSVs
// list what they own in the order of the annotation.
func (a api) cutNext(annotation string) (rest string, found bool) {
	entry, rest, _ := strings.Cut(annotation, ",")
	return rest, entry != "" && a.compareEntry(entry) == 0
}

// compareEntry is strings.Compare(a.String(), entry) without making the string.
func (a api) compareEntry(entry string) int {
	for _, part := range [...]string{a.kind, ".", a.version, ".", a.group} {
		n := min(len(part), len(entry))
		if c := strings.Compare(part[:n], entry[:n]); c != 0 {
			return c
		}
		if n < len(part) {
			return 1
		}
		entry = entry[n:]
	}
	return -len(entry)
}

// isListedAnywhere looks at each entry once: an entry that repeats the kind may be as
// long as its writer likes.
func (a api) isListedAnywhere(annotation string) bool {
	for a.kind != "" {
		i := strings.Index(annotation, a.kind)
		if i < 0 {
			return false
		}
		start := strings.LastIndexByte(annotation[:i], ',') + 1
		entry, rest, _ := strings.Cut(annotation[start:], ",")
		if b, ok := parseAPI(entry); ok && a == b {
			return true
		}
		annotation = rest
	}
	return false
}

func parseAPI(entry string) (a api, ok bool) {
	kind, rest, _ := strings.Cut(strings.TrimSpace(entry), ".")
	version, group, _ := strings.Cut(rest, ".")
	return api{kind, version, group}, kind != "" && version != "" && group != ""
}

// parseAPIs reads an annotation. What names no API is left out.
func parseAPIs(annotation string) []api {
	var list []api
	for entry := range strings.SplitSeq(annotation, ",") {
		if a, ok := parseAPI(entry); ok {
			list = append(list, a)
		}
	}
	return list
}

// formatAPIs writes an annotation: sorted, each API once.
func formatAPIs(list []api) string {
	names := make([]string, 0, len(list))
	for _, a := range list {
		names = append(names, a.String())
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), ",")
}

func providedCount(c *version) int {
	return len(c.Spec.CustomResourceDefinitions.Owned) + len(c.Spec.APIServiceDefinitions.Owned)
}

// provided returns the i-th API that a CSV owns.
func provided(c *version, i int) api {
	crds := c.Spec.CustomResourceDefinitions.Owned
	if i < len(crds) {
		_, group, _ := strings.Cut(crds[i].Name, ".")
		return api{crds[i].Kind, crds[i].Version, group}
	}
	d := &c.Spec.APIServiceDefinitions.Owned[i-len(crds)]
	return api{d.Kind, d.Version, d.Group}
}

func providedAPIs(c *version) []api {
	list := make([]api, providedCount(c))
	for i := range list {
		list[i] = provided(c, i)
	}
	return list
}

func provides(c *version, a api) bool {
	for i := range providedCount(c) {
		if provided(c, i) == a {
			return true
		}
	}
	return false
}

// providesSame reports whether two CSVs provide one API.
func providesSame(a, b *version) bool {
	for i := range providedCount(a) {
		if provides(b, provided(a, i)) {
			return true
		}
	}
	return false
}

func groupAPIs(g *operatorsv1.OperatorGroup) string {
	return g.Annotations[operatorsv1.OperatorGroupProvidedAPIsAnnotationKey]
}

func isGlobal(g *operatorsv1.OperatorGroup) bool {
	return len(g.Status.Namespaces) == 1 && g.Status.Namespaces[0] == ""
}

// watches reports whether a namespace is the group's own or one of its targets.
func watches(g *operatorsv1.OperatorGroup, namespace string) bool {
	return isGlobal(g) || namespace == g.Namespace || slices.Contains(g.Status.Namespaces, namespace)
}

func intersect(a, b *operatorsv1.OperatorGroup) bool {
	if isGlobal(a) || watches(b, a.Namespace) {
		return true
	}
	for _, namespace := range a.Status.Namespaces {
		if watches(b, namespace) {
			return true
		}
	}
	return false
}

// standing is how the APIs of a CSV stand to those that its own and other
// OperatorGroups list.
type standing struct {
	// listed: the own group lists them all.
	listed bool
	// rival is another group that watches one of our namespaces and lists one of
	// them; nil when there is none. contested is that API.
	rival     *operatorsv1.OperatorGroup
	contested api
	// lost: the rival has the better claim.
	lost bool
}

// standing compares the APIs one by one; it does not allocate.
func (m *machine) standing(g *operatorsv1.OperatorGroup) standing {
	c := m.c()
	s := standing{listed: true}
	own := groupAPIs(g)
	rest := own
	for i := range providedCount(c) {
		a, found := provided(c, i), false
		if rest, found = a.cutNext(rest); !found {
			if rest, found = a.cutFrom(own); !found {
				s.listed = s.listed && a.isListedAnywhere(own)
			}
		}
		for _, other := range m.in.OtherGroups.Items {
			if other.Namespace == g.Namespace && other.Name == g.Name || !a.isListed(groupAPIs(other)) || !intersect(g, other) {
				continue
			}
			lost := m.claimIsWeaker(a, other)
			better := s.rival == nil || lost && !s.lost ||
				lost == s.lost && cmp.Or(strings.Compare(other.Namespace, s.rival.Namespace), strings.Compare(other.Name, s.rival.Name)) < 0
			if better {
				s.rival, s.contested, s.lost = other, a, lost
			}
		}
	}
	return s
}

// claimIsWeaker decides between two groups that list the same API, in the same
// way on both sides: an operator that runs keeps what it has, then the older one.
func (m *machine) claimIsWeaker(a api, other *operatorsv1.OperatorGroup) bool {
	var theirs *version
	for _, r := range m.in.Rivals.Items {
		if r.Namespace == other.Namespace && !isCopied(r) && provides(r, a) && (theirs == nil || compareClaims(r, theirs) < 0) {
			theirs = r
		}
	}
	if theirs == nil {
		return false
	}
	ours := m.c()
	for _, n := range m.in.Neighbours.Items {
		if n.Namespace == ours.Namespace && !isCopied(n) && provides(n, a) && compareClaims(n, ours) < 0 {
			ours = n
		}
	}
	return compareClaims(theirs, ours) < 0
}

func compareClaims(a, b *version) int {
	return cmp.Or(
		cmp.Compare(rank(b), rank(a)),
		a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
		strings.Compare(a.Namespace, b.Namespace),
		strings.Compare(a.Name, b.Name),
	)
}

// contestedPace is how often a CSV looks again whose API another group lists
// too, although its own claim is the better one: the other is to give way.
const contestedPace = 10 * time.Second

// apiGates closes unless the group lists the APIs that the CSV provides, and no
// group that shares a namespace with it does. When it does not close, the
// decision holds nothing but when to look again.
//
// Source: operator-lifecycle-manager pkg/controller/operators/olm, APIIntersectionReconciler.
// Differs: of two groups that both list an API the one without a running
// operator gives way, whichever is looked at first.
func (m *machine) apiGates(g *operatorsv1.OperatorGroup) (decision, bool) {
	c := m.c()
	if providedCount(c) == 0 {
		return decision{}, false
	}
	if !m.in.OtherGroups.Complete {
		return m.unobserved("OperatorGroups of all namespaces"), true
	}
	s := m.standing(g)
	if s.rival != nil && s.listed && !m.in.Rivals.Complete {
		return m.unobserved("ClusterServiceVersions of other namespaces"), true
	}
	adds := !s.listed && formatAPIs(union(g, c)) != groupAPIs(g)
	switch {
	case s.rival != nil && !s.listed:
		return m.giveUp("G13", s, v1alpha1.CSVReasonInterOperatorGroupOwnerConflict, "intersecting operatorgroups provide the same apis"), true
	case s.rival != nil && !s.lost:
		return decision{requeue: contestedPace}, false
	case s.rival == nil && (!adds || group.IsShutOut(c) && !g.Spec.StaticProvidedAPIs):
		return decision{}, false // one that was shut out is listed once it is Pending: until then Group takes it from the list
	case g.Spec.StaticProvidedAPIs:
		return m.giveUp("G12", s, v1alpha1.CSVReasonCannotModifyStaticOperatorGroupProvidedAPIs,
			"static provided api operatorgroup cannot be modified by these apis"), true
	}
	d := m.stay("G14")
	list := union(g, c)
	if !adds {
		d.rule = "G15"
		list = slices.DeleteFunc(parseAPIs(groupAPIs(g)), func(a api) bool { return provides(c, a) })
	}
	d.actions = []olmcore.Action{listAPIs(g, list)}
	return d, true
}

// union can be what the annotation says already: some names it cannot express.
func union(g *operatorsv1.OperatorGroup, c *version) []api {
	return append(parseAPIs(groupAPIs(g)), providedAPIs(c)...)
}

func listAPIs(g *operatorsv1.OperatorGroup, list []api) olmcore.Action {
	after := g.DeepCopy()
	setAnnotation(&after.ObjectMeta, operatorsv1.OperatorGroupProvidedAPIsAnnotationKey, formatAPIs(list))
	return olmcore.UpdateOf(g, after, olmcore.Cause{
		Reason: ReasonProvidedAPIsChanged, Message: "the annotation does not list what the operators of OperatorGroup " + g.Name + " provide",
	})
}

// giveUp fails a CSV whose APIs its group may not provide, and stops its
// operator. A Deployment that another version shares is that one's.
func (m *machine) giveUp(rule string, s standing, reason v1alpha1.ConditionReason, message string) decision {
	if !m.in.Deployments.Complete {
		return m.unobserved("Deployments")
	}
	d := fail(rule, reason, message)
	for _, deployment := range m.in.Deployments.Items {
		if deployment.DeletionTimestamp == nil && isOwnDeployment(m.c(), deployment) && isOwnedAlone(deployment.OwnerReferences, olmcore.OwnerReferenceTo(m.c())) {
			d.actions = append(d.actions, deleteDeployment(deployment, olmcore.Cause{Reason: ReasonAPIConflict, Message: message}))
		}
	}
	slices.SortFunc(d.actions, byTarget)
	if s.rival != nil && m.c().Status.Reason != reason {
		d.diagnostics = []olmcore.Diagnostic{{
			Severity: olmcore.Error, Reason: ReasonAPIConflict, Target: olmcore.RefOf(s.rival).Unversioned(),
			Message: "OperatorGroup " + s.rival.Namespace + "/" + s.rival.Name + " provides " + s.contested.String() + " in a namespace that it shares with this one",
		}}
	}
	return d
}
