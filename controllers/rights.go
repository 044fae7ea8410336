// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/olmcore"
)

// Rights are what the API server must allow a process that runs controllers, no more than they use. Kinds that are not
// served need not be allowed.
type Rights struct {
	// Cluster are the rules for the whole cluster: of a ClusterRole with a ClusterRoleBinding.
	Cluster []rbacv1.PolicyRule
	// Namespace are the rules for each of Namespaces: of a ClusterRole with a RoleBinding there. Both are empty without a
	// shard: everything is in Cluster then.
	Namespace  []rbacv1.PolicyRule
	Namespaces []string
}

// Rights returns what the controllers of these names need; none stands for all that New returns. Rules are sorted, each
// resource is in one rule. Custom resources are not among it: a Judge needs list of those whose definitions plans
// change, an operator with spec.cleanup.enabled list and delete of those that it owns.
func (o Options) Rights(only ...string) Rights {
	chosen := o.chosen(only)
	cluster, namespace := verbs{}, verbs{}
	of := func(namespaced bool) verbs {
		if namespaced && len(o.Namespaces) > 0 {
			return namespace
		}
		return cluster
	}
	for _, k := range olmcore.Kinds() {
		if k.Watch != olmcore.WatchNever && isReadBy(k, chosen) {
			of(k.Watch == olmcore.WatchShard).allow(k.Group, k.Plural, "get list watch")
		}
	}
	cluster.allow("events.k8s.io", "events", "create patch") // what is said becomes Events
	for _, r := range slices.Concat(rights, stepRights(o.InstallPlan)) {
		if chosen.Has(r.controller) && (r.when == nil || r.when(&o)) {
			for _, resource := range strings.Fields(r.resources) {
				of(isNamespaced(r.group, resource)).allow(r.group, resource, r.verbs)
			}
		}
	}
	return Rights{Cluster: cluster.rules(), Namespace: namespace.rules(), Namespaces: o.shard()}
}

// chosen are the controllers of these names; without names all that New returns.
func (o Options) chosen(only []string) sets.Set[string] {
	if len(only) == 0 {
		for _, c := range New(&o).Controllers {
			only = append(only, c.Name)
		}
	}
	return sets.New(only...)
}

// isReadBy reports whether one of some controllers reads the objects of a kind.
func isReadBy(k olmcore.Kind, chosen sets.Set[string]) bool {
	return slices.ContainsFunc(k.ReadBy, func(p string) bool { return chosen.HasAny(readers[p]...) })
}

// readers are the controllers whose Gather functions are those of a package, as olmcore.Kind.ReadBy names it.
var readers = map[string][]string{
	"catalog":      {Catalog},
	"subscription": {Subscription, Operator},
	"resolution":   {Subscription},
	"installplan":  {InstallPlan, Sweep, Subscription},
	"csv":          {CSV, Group, Condition, Copies, OLMConfig, Permissions, CSVSweep},
}

// right is what a controller does with resources of a group, besides watching what it reads: a row of the table.
type right struct {
	controller, group, resources, verbs string
	// when is the option without which it does not; nil: always.
	when func(*Options) bool
}

const (
	apps, admission, extensions, registration = "apps", "admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io"
	batch, console, networking, policy        = "batch", "console.openshift.io", "networking.k8s.io", "policy"
	operators, rbac, scheduling               = "operators.coreos.com", rbacv1.GroupName, "scheduling.k8s.io"

	inNamespaces, everywhere = "roles rolebindings", "roles rolebindings clusterroles clusterrolebindings"
	consoleResources         = "consoleclidownloads consolelinks consoleplugins consolequickstarts consoleyamlsamples"
	webhooks                 = "mutatingwebhookconfigurations validatingwebhookconfigurations"
)

// rights is the table: what a controller writes is a row. Updates are patches.
var rights = []right{
	{Catalog, operators, "catalogsources catalogsources/status", "patch", nil},
	{Catalog, operators, "catalogsources/finalizers", "update", nil}, // its objects block its deletion
	{Catalog, "", "pods services serviceaccounts", "create patch delete", nil},
	{Catalog, networking, "networkpolicies", "create patch delete", nil},
	{Catalog, policy, "poddisruptionbudgets", "create patch delete", nil},
	{Catalog, rbac, inNamespaces, "create patch delete", nil},

	{Subscription, operators, "subscriptions subscriptions/status installplans/status", "patch", nil},
	{Subscription, operators, "installplans", "create patch", nil},
	{Subscription, operators, "clusterserviceversions operatorconditions", "patch", labelsComponents},
	{Subscription, "", "configmaps secrets services serviceaccounts namespaces", "patch", labelsComponents},
	{Subscription, apps, "deployments", "patch", labelsComponents},
	{Subscription, rbac, everywhere, "patch", labelsComponents},
	{Subscription, rbac, "roles clusterroles", "escalate bind", labelsComponents}, // RBAC asks anew at each change
	{Subscription, extensions, "customresourcedefinitions", "patch", labelsComponents},
	{Subscription, registration, "apiservices", "patch", labelsComponents},
	{Subscription, "", "configmaps", "create update patch", unpacks}, // update is handed out
	{Subscription, "", "serviceaccounts", "create", unpacks},
	{Subscription, batch, "jobs", "create delete", unpacks},
	{Subscription, rbac, inNamespaces, "create patch delete", unpacks},

	{InstallPlan, operators, "installplans installplans/status subscriptions", "patch", nil},
	{InstallPlan, extensions, "customresourcedefinitions", "create patch", nil},
	{InstallPlan, "", "serviceaccounts", "impersonate", nil},

	{Sweep, operators, "installplans", "patch delete", nil},
	{Sweep, operators, "subscriptions", "patch", nil}, // olm.generated-by is removed when its InstallPlan is gone

	{Group, operators, "operatorgroups operatorgroups/status", "patch", nil},
	{Group, "", "namespaces serviceaccounts", "patch", nil},
	{Group, rbac, "clusterroles", "create patch escalate", nil}, // they aggregate others

	{CSV, operators, "clusterserviceversions", "patch delete", nil},
	{CSV, operators, "clusterserviceversions/status operatorgroups", "patch", nil},
	{CSV, "", "serviceaccounts", "impersonate", nil},
	{CSV, "", "secrets services", "create patch delete", nil},
	{CSV, apps, "deployments", "create patch delete", nil},
	{CSV, rbac, "roles rolebindings clusterrolebindings", "create patch delete", nil},
	{CSV, rbac, "roles clusterroles", "escalate bind", nil},
	{CSV, rbac, "clusterroles", "patch delete", nil}, // patch hands them over
	{CSV, admission, webhooks, "create patch delete", nil},
	{CSV, extensions, "customresourcedefinitions", "patch", nil},
	{CSV, registration, "apiservices", "create patch delete", nil},
	{CSV, scheduling, "priorityclasses", "list patch delete", nil},
	{CSV, console, consoleResources, "list patch delete", nil},

	{Condition, operators, "operatorconditions", "create update patch", nil}, // update is handed out
	{Condition, operators, "operatorconditions/status", "patch", nil},
	{Condition, apps, "deployments", "patch", nil},
	{Condition, rbac, inNamespaces, "create patch delete", nil},

	{Copies, operators, "clusterserviceversions", "create patch delete", nil},
	{Copies, operators, "clusterserviceversions/status", "patch", nil},
	{Copies, "", "events", "get create delete", nil},

	{OLMConfig, operators, "olmconfigs/status", "patch", nil},

	{Permissions, "", "serviceaccounts", "impersonate", nil},
	{Permissions, rbac, everywhere, "create patch delete", nil},
	{Permissions, rbac, "roles clusterroles", "escalate bind", nil},

	{CSVSweep, scheduling, "priorityclasses", "list", nil},
	{CSVSweep, console, consoleResources, "list", nil},
	{CSVSweep, "", "namespaces", "patch", deletesLeftovers},
	{CSVSweep, rbac, "rolebindings clusterroles clusterrolebindings", "delete", deletesLeftovers},
	{CSVSweep, admission, webhooks, "delete", deletesLeftovers},
	{CSVSweep, registration, "apiservices", "delete", deletesLeftovers},
	{CSVSweep, scheduling, "priorityclasses", "delete", deletesLeftovers},
	{CSVSweep, console, consoleResources, "delete", deletesLeftovers},

	{Operator, operators, "operators", "create", nil},
	{Operator, operators, "operators/status", "patch", nil},
}

func labelsComponents(o *Options) bool { return !o.Subscription.SkipComponents }
func unpacks(o *Options) bool          { return o.InstallPlan.OPMImage != "" }
func deletesLeftovers(o *Options) bool { return o.CSV.Cleanup.SweepDelete }

// stepRights are for the steps of InstallPlans, of every kind that they may have.
func stepRights(config installplan.Config) []right {
	list := []right{{InstallPlan, rbac, "roles clusterroles", "escalate bind", nil}}
	for _, step := range config.StepKinds() {
		k, known := olmcore.KindOf(step.GroupKind())
		r := right{InstallPlan, step.Group, k.Plural, strings.Join(step.Verbs, " "), nil}
		if k.Watch == olmcore.WatchNever {
			r.verbs += " get"
		}
		if !known {
			plural, _ := meta.UnsafeGuessKindToResource(step.GroupVersionKind)
			r.group, r.resources = rbacv1.APIGroupAll, plural.Resource
		}
		list = append(list, r)
	}
	return list
}

// isNamespaced reports whether the objects of a resource are in namespaces; of one that is not known some may be.
func isNamespaced(group, resource string) bool {
	plural, _, _ := strings.Cut(resource, "/")
	for _, k := range olmcore.Kinds() {
		if k.Group == group && k.Plural == plural {
			return k.Namespaced
		}
	}
	return false
}

// verbs is what is allowed for each resource.
type verbs map[schema.GroupResource]sets.Set[string]

func (v verbs) allow(group, resource, fields string) {
	key := schema.GroupResource{Group: group, Resource: resource}
	if v[key] == nil {
		v[key] = sets.New[string]()
	}
	v[key].Insert(strings.Fields(fields)...)
}

// verbOrder is the order in which rules name verbs.
var verbOrder = strings.Fields("get list watch create update patch delete escalate bind impersonate")

// rules has one rule for the resources of a group with the same verbs.
func (v verbs) rules() []rbacv1.PolicyRule {
	resources := map[[2]string][]string{}
	for key, allowed := range v {
		ordered := slices.DeleteFunc(slices.Clone(verbOrder), func(verb string) bool { return !allowed.Has(verb) })
		id := [2]string{key.Group, strings.Join(ordered, " ")}
		resources[id] = append(resources[id], key.Resource)
	}
	var rules []rbacv1.PolicyRule
	for _, id := range slices.SortedFunc(maps.Keys(resources), func(a, b [2]string) int {
		return cmp.Or(strings.Compare(a[0], b[0]), slices.Compare(slices.Sorted(slices.Values(resources[a])), slices.Sorted(slices.Values(resources[b]))))
	}) {
		slices.Sort(resources[id])
		rules = append(rules, rbacv1.PolicyRule{APIGroups: []string{id[0]}, Resources: resources[id], Verbs: strings.Fields(id[1])})
	}
	return rules
}
