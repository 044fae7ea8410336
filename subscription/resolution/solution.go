// SPDX-License-Identifier: Apache-2.0

package resolution

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/olmcore/olm/internal/yamljson"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/decode"
	"github.com/olmcore/olm/subscription/resolution/internal/model"
)

// Target contains the operators of one Subscription before and after a resolution.
type Target struct {
	Subscription string
	// Current is the installed operator before this resolution, or empty if there is none. Target is the operator after
	// this resolution, or empty if there is none.
	Current, Target string
	// Adopt means that the Subscription adopts Target, which exists already. The Decision sets status.currentCSV to
	// Target. Package subscription then observes that Target exists, and sets status.installedCSV.
	Adopt bool
}

// solution turns the selected entries into what must be done.
//
// Source: operator-lifecycle-manager pkg/controller/registry/resolver, ResolveSteps.
func solution(p *service) Result {
	res := Result{Outcome: Unchanged, Cores: p.cores}
	changed := make(map[string]string, len(p.Subs))
	var chosen []*model.Node
	for _, pick := range p.picks {
		n := pick.Node
		if n != nil && n.Source != model.ExistingSource {
			chosen = append(chosen, n)
		}
	}
	slices.SortFunc(chosen, func(a, b *model.Node) int {
		return cmp.Or(strings.Compare(a.Entry.Name, b.Entry.Name), strings.Compare(a.Entry.Pkg, b.Entry.Pkg))
	})
	taken := map[string]bool{}
	for _, sub := range p.Subs {
		taken[sub.Object.Name] = true
	}
	for _, n := range chosen {
		matching := matching(p, n)
		if len(matching) > 0 && inPlace(p, n, matching) {
			continue
		}
		op := install(p, n, matching)
		res.Operators = append(res.Operators, op)
		for _, sub := range matching {
			if sub.Object.Status.CurrentCSV != n.Entry.Name {
				changed[sub.Object.Name] = n.Entry.Name
			} else if c := p.ByName[n.Entry.Name]; c == nil {
				p.Report(olmcore.Warning, model.ReasonMissingCSV, p.SubscriptionRef(sub.Object.Name), "status.currentCSV",
					"ClusterServiceVersion %s does not exist; it is installed again", n.Entry.Name)
			}
		}
		if len(matching) == 0 {
			res.Generated = append(res.Generated, generate(p, &op, taken))
		}
	}
	slices.SortFunc(res.Generated, func(a, b *v1alpha1.Subscription) int { return strings.Compare(a.Name, b.Name) })
	decide(p, &res, changed)
	if len(res.Operators) > 0 || len(changed) > 0 {
		res.Outcome = Resolved
	}
	return res
}

// matching returns the Subscriptions that follow a catalog entry, the ones that failed left out.
func matching(p *service, n *model.Node) []*model.Subscription {
	var list []*model.Subscription
	for _, s := range p.Subs {
		spec := s.Object.Spec
		if !p.Scope.Failed(s) && s.Source == n.Source && spec.Package == n.Entry.Channel.Pkg.Name &&
			(spec.Channel == "" || spec.Channel == n.Entry.Channel.Name) {
			list = append(list, s)
		}
	}
	return list
}

// inPlace reports whether a selected entry is installed and known already.
func inPlace(p *service, n *model.Node, matching []*model.Subscription) bool {
	c := p.ByName[n.Entry.Name]
	return c != nil && !c.Deleting() && !slices.ContainsFunc(matching,
		func(s *model.Subscription) bool { return s.Object.Status.CurrentCSV != n.Entry.Name })
}

func install(p *service, n *model.Node, matching []*model.Subscription) olmcore.Operator {
	op := p.Operator(n.Ref)
	op.Replaces = replaces(p, n)
	op.Bundle = published(n.Entry)
	for _, sub := range matching {
		op.For = append(op.For, sub.Object.Name)
	}
	slices.Sort(op.For)
	op.RequiredBy = requiredBy(p, n)
	c := p.ByName[n.Entry.Name]
	if c != nil && c.Deleting() {
		op.WaitFor = []types.NamespacedName{{Namespace: p.In.Namespace, Name: n.Entry.Name}}
	}
	checkInstallModes(p, n)
	return op
}

// replaces returns the current operator that an entry takes over from, else what the channel says. Of several the one
// that is nearer to the head. A skipRange that holds the version itself makes it take over from nothing.
func replaces(p *service, n *model.Node) string {
	var over *model.Subscription
	position := func(s *model.Subscription) int32 {
		e := n.Entry.Channel.ByName[s.Current.Object.Name]
		if e != nil && e.Position >= 0 {
			return e.Position
		}
		return 1 << 30
	}
	for _, s := range p.Subs {
		if p.Scope.Failed(s) || s.Current == nil || p.Targets[s.Index] != n.Ref || s.Current.Object.Name == n.Entry.Name {
			continue
		}
		if over == nil || position(s) <= position(over) {
			over = s
		}
	}
	if over != nil {
		return over.Current.Object.Name
	}
	return n.Entry.Replaces
}

// requiredBy returns the names of the selected entries whose requirements n meets.
func requiredBy(p *service, n *model.Node) []string {
	var names []string
	if !n.Eligible() {
		return nil
	}
	meets := func(q *model.Requirement) bool { return p.Satisfies(n.Entry, q.Predicate) }
	for _, pick := range p.picks {
		m := pick.Node
		if m != nil && m != n && slices.ContainsFunc(m.Entry.Requirements, meets) {
			names = append(names, m.Entry.Name)
		}
	}
	slices.Sort(names)
	return names
}

// decide says what becomes of each Subscription.
func decide(p *service, res *Result, changed map[string]string) {
	res.Decisions, res.Targets = make([]olmcore.SubscriptionDecision, 0, len(p.Subs)), make([]Target, 0, len(p.Subs))
	for _, s := range p.Subs {
		name := s.Object.Name
		d := olmcore.SubscriptionDecision{Name: name, CurrentCSV: s.Object.Status.CurrentCSV, Failure: p.failures[name]}
		t := Target{Subscription: name}
		if s.Current != nil {
			t.Current = s.Current.Object.Name
		}
		switch {
		case !p.served, p.Scope.Failed(s) && !replacedByOther(p, s):
			t.Target = t.Current
		case !p.Scope.Failed(s) && p.Targets[s.Index].Entry != nil:
			t.Target = p.Targets[s.Index].Entry.Name
			t.Adopt = s.Current == nil && p.Targets[s.Index].Source == model.ExistingSource
		}
		if t.Adopt && d.CurrentCSV != t.Target {
			changed[name] = t.Target // package subscription takes what exists for installed
		}
		if csv, ok := changed[name]; ok {
			d.CurrentCSV, d.Changed = csv, true
		}
		res.Decisions = append(res.Decisions, d)
		res.Targets = append(res.Targets, t)
	}
}

// whyInstalled returns a sentence about why a bundle is part of the solution for a Subscription, or for the namespace if
// subscription is empty. It returns "" if the bundle is not part of it.
func (s *service) whyInstalled(res *Result, subscription, bundle string) string {
	concerns := func(names ...string) bool {
		return subscription == "" || len(names) == 0 || slices.Contains(names, subscription)
	}
	for _, op := range res.Operators {
		if op.Name == bundle && concerns(op.For...) {
			why := "for Subscription " + model.Enumerate(op.For, " and ")
			if len(op.For) == 0 {
				why = "because " + model.Enumerate(op.RequiredBy, " and ") + " needs it"
			}
			return fmt.Sprintf("%s is installed from channel %s of catalog %s %s.", bundle, op.Channel, op.Catalog, why)
		}
	}
	for _, t := range res.Targets {
		if t.Target != "" && t.Target == bundle && concerns(t.Subscription) {
			return fmt.Sprintf("%s stays installed for Subscription %s.", bundle, t.Subscription)
		}
	}
	c := s.ByName[bundle]
	if subscription == "" && c != nil && s.Scope.Freestanding(c) {
		return fmt.Sprintf("%s stays installed: it exists, and no Subscription refers to it.", bundle)
	}
	return ""
}

// replacedByOther reports whether another Subscription moves on from the operator that a failed one has, too.
func replacedByOther(p *service, s *model.Subscription) bool {
	return s.Current != nil && slices.ContainsFunc(s.Current.Owners, func(other *model.Subscription) bool {
		return !p.Scope.Failed(other) && p.Targets[other.Index].Entry != s.Current.Entry
	})
}

// published is what of a bundle reaches the cluster: the properties without those that only carry manifests, and the
// manifests. If one of these cannot be read, the bundle is unpacked from its image, or is invalid if it has none.
//
// Source: operator-registry alpha/declcfg, readBundleObjects.
// Differs: there a property that cannot be read makes the whole catalog unreadable.
func published(e *model.Entry) olmcore.Bundle {
	b := olmcore.Bundle{Image: e.Image, Objects: e.Objects, Properties: e.Properties}
	inline := func(property olmcore.Property) bool {
		return property.Type == model.PropertyBundleObject || property.Type == model.PropertyCSVMetadata
	}
	if !slices.ContainsFunc(e.Properties, inline) {
		return b
	}
	b.Properties = slices.DeleteFunc(slices.Clone(e.Properties), inline)
	if len(e.Objects) > 0 {
		return b
	}
	for i, property := range e.Properties {
		if property.Type != model.PropertyBundleObject {
			continue
		}
		o, err := objectOf(property.Value)
		switch {
		case err == nil:
			b.Objects = append(b.Objects, o)
		case b.Image != "":
			b.Objects = nil
			return b
		case b.Invalid == "":
			b.Invalid = fmt.Sprintf("property at index %d of type %s: %s", i, property.Type, err)
		}
	}
	return b
}

// bundleObject is the value of a property olm.bundle.object.
type bundleObject struct {
	// Data is a manifest. It is base64 in JSON.
	Data []byte `json:"data"`
}

// objectOf decodes the manifest in the value of a property olm.bundle.object, which is JSON or YAML. It returns an
// unstructured object if the manifest has no apiVersion or does not fit its Go type. Package installplan/create reports
// the problem.
func objectOf(value json.RawMessage) (olmcore.Object, error) {
	var manifest bundleObject
	if err := json.Unmarshal(value, &manifest); err != nil {
		return nil, err
	}
	data := manifest.Data
	if len(data) == 0 {
		return nil, errors.New("it has no data")
	}
	if !json.Valid(data) {
		var err error
		if data, err = yamljson.Convert(data); err != nil {
			return nil, err
		}
	}
	if o, err := decode.Decode(data); err == nil {
		return o, nil
	}
	u := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(data, &u.Object); err != nil {
		return nil, errors.New("the manifest is not an object")
	}
	if u.GetKind() == "" {
		return nil, errors.New("the object has no kind")
	}
	return u, nil
}
