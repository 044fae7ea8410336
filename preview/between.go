// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"cmp"
	"reflect"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/olmcore/olm/csv/permissions"
	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/preview/internal/simulation"
)

// Preview is what approving a plan would do. Its JSON is stable: fields may be added. No list is nil.
type Preview struct {
	// Plan is the InstallPlan, with the resourceVersion that was looked at.
	Plan olmcore.Ref `json:"plan"`
	// Versions are the ClusterServiceVersions that come, with those that they replace.
	Versions []Version `json:"versions"`
	// Objects are created, changed or deleted, in this order and sorted. Statuses do not count, nor what the library notes
	// on objects for itself.
	Objects []Object `json:"objects"`
	// Permissions are what roles and bindings give from then on, and do not give any more.
	Permissions permissions.Difference `json:"permissions"`
	// CustomResourceDefinitions are those that come, change or go.
	CustomResourceDefinitions []Definition `json:"customResourceDefinitions"`
	// Images are those of Deployments that come, change or go.
	Images []Image `json:"images"`
	// Webhooks are those that come, change or go.
	Webhooks []Webhook `json:"webhooks"`
	// Restarts are the Deployments whose Pods are replaced.
	Restarts []Restart `json:"restarts"`
	// Deprecations are what catalogs say of what is installed then.
	Deprecations []Deprecation `json:"deprecations"`
	// Gates are what the operators that are replaced say about being upgraded.
	Gates []Gate `json:"gates"`
	// Blocked is what keeps it from succeeding. Where it is not empty, the rest is how far it gets.
	Blocked []Block `json:"blocked"`
	// Undo says whether there is a way back.
	Undo Undo `json:"undo"`
	// NotRead contains the kinds whose objects were not read. The simulation treats them as if no objects existed.
	NotRead []string `json:"notRead"`

	// SchemaChanges ask which custom resources new schemas would break: the caller has them judged, as
	// installplan.Outcome.SchemaChanges says, and calls Of again with Input.CustomResources. Empty once they were.
	SchemaChanges []installplan.SchemaChange `json:"-"`
}

// Between compares two states of a cluster, whatever led from one to the other. Of the result Plan, Blocked and NotRead
// are the caller's to fill in, and CustomResourceDefinitions say nothing of custom resources.
func Between(before, after []olmcore.Object) Preview {
	return between(simulation.StateOf(before), simulation.StateOf(after))
}

// pair is an object before and after; nil where there is none.
type pair struct {
	key           olmcore.Key
	before, after olmcore.Object
}

func (p pair) either() olmcore.Object {
	if p.after != nil {
		return p.after
	}
	return p.before
}

// typed returns both as their Go type, nil where there is none.
func typed[T any](p pair) (before, after *T) {
	before, _ = any(p.before).(*T)
	after, _ = any(p.after).(*T)
	return before, after
}

func between(was, is simulation.State) Preview {
	pairs := pairsOf(was, is)
	p := Preview{
		Versions: []Version{}, Objects: []Object{}, CustomResourceDefinitions: []Definition{}, Images: []Image{}, Webhooks: webhooksOf(pairs),
		Restarts: []Restart{}, Deprecations: deprecations(is), Gates: []Gate{}, Blocked: []Block{}, NotRead: []string{},
		Permissions: compareRights(was, is, pairs),
	}
	for _, pair := range pairs {
		if o, counts := objectOf(pair); counts {
			p.Objects = append(p.Objects, o)
		}
		for _, take := range parts {
			take(&p, pair)
		}
	}
	for _, v := range p.Versions {
		p.Gates = append(p.Gates, gates(was, v)...)
	}
	slices.SortStableFunc(p.Objects, func(a, b Object) int { return cmp.Compare(order[a.Change], order[b.Change]) })
	p.Undo = undoOf(p)
	return p
}

// parts are what is told of objects besides that they change. Each looks at the kinds that it knows.
var parts = []func(p *Preview, of pair){takeVersion, takeDefinition, takeDeployment}

// pairsOf returns the objects that are others now, sorted.
func pairsOf(was, is simulation.State) []pair {
	var all []pair
	for key, before := range was {
		if after := is[key]; after != before {
			all = append(all, pair{key, before, after})
		}
	}
	for key, after := range is {
		if was[key] == nil {
			all = append(all, pair{key, nil, after})
		}
	}
	slices.SortFunc(all, func(a, b pair) int { return compareKeys(a.key, b.key) })
	return all
}

func compareKeys(a, b olmcore.Key) int {
	return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.Group, b.Group), strings.Compare(a.Namespace, b.Namespace),
		strings.Compare(a.Name, b.Name))
}

func takeVersion(p *Preview, of pair) {
	before, after := typed[v1alpha1.ClusterServiceVersion](of)
	if before == nil && after != nil && !after.IsCopied() {
		v := Version{Namespace: after.Namespace, Name: after.Name, Replaces: after.Spec.Replaces}
		if !reflect.ValueOf(after.Spec.Version).IsZero() {
			v.Version = after.Spec.Version.String()
		}
		p.Versions = append(p.Versions, v)
	}
}

// compareRights compares what those may do whose roles or bindings change, with all else that they are given.
func compareRights(was, is simulation.State, pairs []pair) permissions.Difference {
	roles, subjects := map[olmcore.Key]bool{}, map[rbacv1.Subject]bool{}
	note := func(o olmcore.Object) {
		if _, to := bindingOf(o); to != nil {
			for _, s := range to {
				subjects[s] = true
			}
		}
	}
	for _, p := range pairs {
		if p.key.Group != rbacv1.GroupName {
			continue
		}
		roles[p.key] = true
		note(p.before)
		note(p.after)
	}
	for _, state := range []simulation.State{was, is} {
		for key, o := range state {
			r, is := o.(*rbacv1.ClusterRole)
			if is && permissions.Aggregates(r) { // rules of other ClusterRoles are added to it
				roles[key] = true
			}
		}
	}
	for _, state := range []simulation.State{was, is} {
		for _, o := range state {
			role, to := bindingOf(o)
			if to != nil && roles[role] {
				note(o)
			}
		}
	}
	d := permissions.Compare(rightsOf(was, roles, subjects), rightsOf(is, roles, subjects))
	own := ownConditions(was, is)
	return permissions.Difference{Added: withoutOwn(d.Added, own), Removed: withoutOwn(d.Removed, own)}
}

// rightsOf returns the bindings of subjects, cut down to these, and all that they or the changed roles need to be
// understood.
func rightsOf(state simulation.State, roles map[olmcore.Key]bool, subjects map[rbacv1.Subject]bool) []olmcore.Object {
	needed := map[olmcore.Key]bool{}
	var all []olmcore.Object
	for _, o := range state {
		role, to := bindingOf(o)
		to = slices.DeleteFunc(slices.Clone(to), func(s rbacv1.Subject) bool { return !subjects[s] })
		if len(to) == 0 {
			continue
		}
		needed[role] = true
		all = append(all, withSubjects(o, to))
	}
	for key, o := range state {
		_, to := bindingOf(o)
		if to == nil && key.Group == rbacv1.GroupName && (needed[key] || roles[key]) {
			all = append(all, o)
		}
	}
	return all
}

// condition is an OperatorCondition, and who may write it as each operator may write its own.
type condition struct{ subject, scope, name string }

// ownConditions are those of the versions that exist in either state.
func ownConditions(states ...simulation.State) map[condition]bool {
	own := map[condition]bool{}
	for _, state := range states {
		for _, o := range state {
			c, is := o.(*v1alpha1.ClusterServiceVersion)
			if !is || c.IsCopied() {
				continue
			}
			for _, d := range c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
				account := cmp.Or(d.Spec.Template.Spec.ServiceAccountName, "default")
				own[condition{"ServiceAccount " + c.Namespace + "/" + account, "namespace " + c.Namespace, c.Name}] = true
			}
		}
	}
	return own
}

// withoutOwn takes away what lets operators write their own OperatorConditions, and nothing that goes beyond it.
func withoutOwn(grants []permissions.Grant, own map[condition]bool) []permissions.Grant {
	within := func(list []string, of ...string) bool {
		return len(list) > 0 && !slices.ContainsFunc(list, func(entry string) bool { return !slices.Contains(of, entry) })
	}
	return slices.DeleteFunc(grants, func(g permissions.Grant) bool {
		r := g.Rule
		return within(r.APIGroups, operatorsv2.GroupVersion.Group) && within(r.Resources, "operatorconditions") && within(r.Verbs,
			"get", "update", "patch") &&
			len(r.ResourceNames) > 0 && !slices.ContainsFunc(r.ResourceNames,
			func(name string) bool { return !own[condition{g.Subject, g.Scope, name}] })
	})
}

// bindingOf returns the role that a binding gives and to whom; of other objects nil.
func bindingOf(o olmcore.Object) (role olmcore.Key, to []rbacv1.Subject) {
	role = olmcore.Key{Group: rbacv1.GroupName}
	switch b := o.(type) {
	case *rbacv1.RoleBinding:
		role.Kind, role.Name, to = b.RoleRef.Kind, b.RoleRef.Name, append([]rbacv1.Subject{}, b.Subjects...)
		if role.Kind == "Role" {
			role.Namespace = b.Namespace
		}
	case *rbacv1.ClusterRoleBinding:
		role.Kind, role.Name, to = b.RoleRef.Kind, b.RoleRef.Name, append([]rbacv1.Subject{}, b.Subjects...)
	}
	return role, to
}

func withSubjects(o olmcore.Object, to []rbacv1.Subject) olmcore.Object {
	switch b := o.(type) {
	case *rbacv1.RoleBinding:
		cut := *b
		cut.Subjects = to
		return &cut
	case *rbacv1.ClusterRoleBinding:
		cut := *b
		cut.Subjects = to
		return &cut
	}
	return o
}

func deprecations(is simulation.State) []Deprecation {
	all := []Deprecation{}
	for _, o := range is {
		s, isSubscription := o.(*v1alpha1.Subscription)
		if !isSubscription {
			continue
		}
		for _, kind := range []v1alpha1.SubscriptionConditionType{
			v1alpha1.SubscriptionPackageDeprecated, v1alpha1.SubscriptionChannelDeprecated, v1alpha1.SubscriptionBundleDeprecated,
		} {
			if c := s.Status.GetCondition(kind); c.Status == corev1.ConditionTrue {
				all = append(all, Deprecation{s.Name, string(kind), c.Message})
			}
		}
	}
	slices.SortFunc(all, func(a, b Deprecation) int {
		return cmp.Or(strings.Compare(a.Subscription, b.Subscription), strings.Compare(a.Of, b.Of))
	})
	return all
}

// Gate is what an operator says about being upgraded, by its OperatorCondition.
type Gate struct {
	// Operator is the ClusterServiceVersion that would be replaced.
	Operator string `json:"operator"`
	// Upgradeable is True, False or Unknown; Overridden: an administrator said so.
	Upgradeable string `json:"upgradeable"`
	Overridden  bool   `json:"overridden,omitempty"`
	Reason      string `json:"reason,omitempty"`
	Message     string `json:"message,omitempty"`
}

func gates(was simulation.State, v Version) []Gate {
	c, is := was[olmcore.Key{Group: operatorsv2.GroupVersion.Group, Kind: "OperatorCondition", Namespace: v.Namespace,
		Name: v.Replaces}].(*operatorsv2.OperatorCondition)
	if !is {
		return nil
	}
	said, overridden := meta.FindStatusCondition(c.Spec.Overrides, operatorsv2.Upgradeable), true
	if said == nil {
		said, overridden = meta.FindStatusCondition(c.Status.Conditions, operatorsv2.Upgradeable), false
	}
	if said == nil {
		return nil
	}
	return []Gate{{Operator: v.Replaces, Upgradeable: string(said.Status), Overridden: overridden, Reason: said.Reason, Message: said.Message}}
}

// blocked tells what of a plan and of its versions is not as it should be in the end.
func blocked(is simulation.State, key olmcore.Key) []Block {
	plan, exists := is[key].(*v1alpha1.InstallPlan)
	if !exists {
		return nil
	}
	var all []Block
	if s := &plan.Status; s.Phase != v1alpha1.InstallPlanPhaseComplete {
		b := Block{Object: named(plan), Reason: string(s.Phase), Message: s.Message}
		for _, c := range s.Conditions {
			if c.Status == corev1.ConditionFalse {
				b.Reason, b.Message = string(c.Reason), cmp.Or(c.Message, b.Message)
			}
		}
		all = append(all, b)
	}
	for _, name := range plan.Spec.ClusterServiceVersionNames {
		c, exists := is[olmcore.Key{Group: v1alpha1.GroupName, Kind: v1alpha1.ClusterServiceVersionKind, Namespace: plan.Namespace,
			Name: name}].(*v1alpha1.ClusterServiceVersion)
		if exists && c.Status.Phase != v1alpha1.CSVPhaseSucceeded && c.Status.Phase != v1alpha1.CSVPhaseReplacing &&
			c.Status.Phase != v1alpha1.CSVPhaseDeleting {
			b := Block{Object: named(c), Reason: cmp.Or(string(c.Status.Reason), string(c.Status.Phase)), Message: c.Status.Message}
			if names := unmet(c); names != "" {
				b.Message += ": " + names
			}
			all = append(all, b)
		}
	}
	return all
}

// unmet names the requirements that are not met.
func unmet(c *v1alpha1.ClusterServiceVersion) string {
	var names []string
	for _, r := range c.Status.RequirementStatus {
		if r.Status != v1alpha1.RequirementStatusReasonPresent {
			names = append(names, r.Kind+" "+r.Name+" is "+string(r.Status))
		}
	}
	return strings.Join(names, ", ")
}

// named is a reference without what tells incarnations and versions apart, which the simulation made up.
func named(o olmcore.Object) olmcore.Ref {
	r := olmcore.RefOf(o)
	r.UID, r.ResourceVersion = "", ""
	return r
}
