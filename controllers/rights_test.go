// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/olmcore"
)

func rule(group, resources, verbs string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: strings.Fields(resources), Verbs: strings.Fields(verbs)}
}

func TestRightsOfOneController(t *testing.T) {
	const read, objects = "get list watch", "get list watch create patch delete"
	for name, c := range map[string]struct {
		namespaces []string
		want       controllers.Rights
	}{
		"of the whole cluster": {nil, controllers.Rights{Cluster: []rbacv1.PolicyRule{
			rule("", "configmaps namespaces nodes", read),
			rule("", "pods serviceaccounts services", objects),
			rule("events.k8s.io", "events", "create patch"),
			rule("networking.k8s.io", "networkpolicies", objects),
			rule("operators.coreos.com", "catalogsources", read+" patch"),
			rule("operators.coreos.com", "catalogsources/finalizers", "update"),
			rule("operators.coreos.com", "catalogsources/status", "patch"),
			rule("operators.coreos.com", "subscriptions", read),
			rule("policy", "poddisruptionbudgets", objects),
			rule("rbac.authorization.k8s.io", "rolebindings roles", objects),
		}}},
		"of a shard": {[]string{"ops"}, controllers.Rights{
			Cluster: []rbacv1.PolicyRule{
				rule("", "namespaces nodes", read),
				rule("events.k8s.io", "events", "create patch"),
				rule("operators.coreos.com", "catalogsources subscriptions", read),
			},
			Namespace: []rbacv1.PolicyRule{
				rule("", "configmaps", read),
				rule("", "pods serviceaccounts services", objects),
				rule("networking.k8s.io", "networkpolicies", objects),
				rule("operators.coreos.com", "catalogsources catalogsources/status", "patch"),
				rule("operators.coreos.com", "catalogsources/finalizers", "update"),
				rule("policy", "poddisruptionbudgets", objects),
				rule("rbac.authorization.k8s.io", "rolebindings roles", objects),
			},
			Namespaces: []string{"olm", "ops"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, controllers.Options{Namespaces: c.namespaces}.Rights(controllers.Catalog)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestOptionsSayWhatIsAllowed: what an option switches off is not allowed.
func TestOptionsSayWhatIsAllowed(t *testing.T) {
	for name, c := range map[string]struct {
		change     func(*controllers.Options)
		controller string
		// adds and takes are what the option allows and forbids.
		adds, takes []string
	}{
		"bundles are unpacked": {func(o *controllers.Options) { o.InstallPlan.OPMImage = "opm" }, controllers.Subscription, []string{
			"batch/jobs create", "batch/jobs delete", "/configmaps create", "/configmaps update", "/serviceaccounts create",
			"rbac.authorization.k8s.io/rolebindings create", "rbac.authorization.k8s.io/rolebindings delete",
			"rbac.authorization.k8s.io/roles create", "rbac.authorization.k8s.io/roles delete",
		}, nil},
		"objects get no component labels": {func(o *controllers.Options) { o.Subscription.SkipComponents = true }, controllers.Subscription, nil, []string{
			"/configmaps patch", "/namespaces patch", "/secrets patch", "/serviceaccounts patch", "/services patch",
			"apiextensions.k8s.io/customresourcedefinitions patch", "apiregistration.k8s.io/apiservices patch", "apps/deployments patch",
			"operators.coreos.com/clusterserviceversions patch", "operators.coreos.com/operatorconditions patch",
			"rbac.authorization.k8s.io/clusterrolebindings patch", "rbac.authorization.k8s.io/clusterroles escalate",
			"rbac.authorization.k8s.io/clusterroles patch", "rbac.authorization.k8s.io/rolebindings patch",
			"rbac.authorization.k8s.io/clusterroles bind", "rbac.authorization.k8s.io/roles bind",
			"rbac.authorization.k8s.io/roles escalate", "rbac.authorization.k8s.io/roles patch",
		}},
		"leftovers are deleted": {func(o *controllers.Options) { o.CSV.Cleanup.SweepDelete = true }, controllers.CSVSweep, []string{
			"/namespaces patch", "admissionregistration.k8s.io/mutatingwebhookconfigurations delete",
			"admissionregistration.k8s.io/validatingwebhookconfigurations delete", "apiregistration.k8s.io/apiservices delete",
			"console.openshift.io/consoleclidownloads delete", "console.openshift.io/consolelinks delete",
			"console.openshift.io/consoleplugins delete", "console.openshift.io/consolequickstarts delete",
			"console.openshift.io/consoleyamlsamples delete",
			"rbac.authorization.k8s.io/clusterrolebindings delete", "rbac.authorization.k8s.io/clusterroles delete",
			"rbac.authorization.k8s.io/rolebindings delete", "scheduling.k8s.io/priorityclasses delete",
		}, nil},
		"steps have one more kind": {func(o *controllers.Options) { o.InstallPlan.SupportedKinds = []string{"Widget"} }, controllers.InstallPlan,
			[]string{"*/widgets create", "*/widgets get", "*/widgets patch"}, []string{
				"*/consoleclidownloads create", "*/consoleclidownloads get", "*/consoleclidownloads patch",
				"*/consolelinks create", "*/consolelinks get", "*/consolelinks patch",
				"*/consoleplugins create", "*/consoleplugins get", "*/consoleplugins patch",
				"*/consolequickstarts create", "*/consolequickstarts get", "*/consolequickstarts patch",
				"*/consoleyamlsamples create", "*/consoleyamlsamples get", "*/consoleyamlsamples patch",
				"*/prometheusrules create", "*/prometheusrules get", "*/prometheusrules patch",
				"*/servicemonitors create", "*/servicemonitors get", "*/servicemonitors patch",
				"*/verticalpodautoscalers create", "*/verticalpodautoscalers get", "*/verticalpodautoscalers patch",
				"networking.k8s.io/networkpolicies create", "networking.k8s.io/networkpolicies patch",
				"policy/poddisruptionbudgets create", "policy/poddisruptionbudgets patch",
				"scheduling.k8s.io/priorityclasses create", "scheduling.k8s.io/priorityclasses delete",
				"scheduling.k8s.io/priorityclasses get", "scheduling.k8s.io/priorityclasses patch",
			}},
	} {
		t.Run(name, func(t *testing.T) {
			var o controllers.Options
			before := allowed(o.Rights(c.controller))
			c.change(&o)
			after := allowed(o.Rights(c.controller))
			if diff := cmp.Diff(sets.New(c.adds...), after.Difference(before)); diff != "" {
				t.Errorf("what is allowed besides: %s", diff)
			}
			if diff := cmp.Diff(sets.New(c.takes...), before.Difference(after)); diff != "" {
				t.Errorf("what is not allowed any more: %s", diff)
			}
		})
	}
}

// allowed lists rights as "group/resource verb".
func allowed(r controllers.Rights) sets.Set[string] {
	all := sets.New[string]()
	for _, rule := range slices.Concat(r.Cluster, r.Namespace) {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				all.Insert(rule.APIGroups[0] + "/" + resource + " " + verb)
			}
		}
	}
	return all
}

// TestRightsAreOfWhatIsRun: the controllers that New leaves out need nothing, and all together need what each one does.
func TestRightsAreOfWhatIsRun(t *testing.T) {
	union := func(o controllers.Options) sets.Set[string] {
		all := sets.New[string]()
		for _, c := range controllers.New(&o).Controllers {
			each := allowed(o.Rights(c.Name))
			require.NotEmpty(t, each, c.Name)
			all = all.Union(each)
		}
		return all
	}
	for _, o := range []controllers.Options{{}, {Sweeps: true}, {Operators: true}, {Sweeps: true, Operators: true}} {
		require.Equal(t, union(o), allowed(o.Rights()))
	}
	require.False(t, allowed(controllers.Options{}.Rights()).Has("operators.coreos.com/operators create"))
	require.True(t, allowed(controllers.Options{Operators: true}.Rights()).Has("operators.coreos.com/operators create"))
}

// TestNoRuleIsAWildcard: verbs and resources are named, and the group is where steps may be of any.
func TestNoRuleIsAWildcard(t *testing.T) {
	known := sets.New("events.k8s.io/events")
	for _, k := range olmcore.Kinds() {
		known.Insert(k.Group+"/"+k.Plural, k.Group+"/"+k.Plural+"/status", k.Group+"/"+k.Plural+"/finalizers")
	}
	for right := range allowed(controllers.Options{Sweeps: true, Operators: true}.Rights()) {
		resource, verb, _ := strings.Cut(right, " ")
		require.NotContains(t, right[1:], "*")
		require.NotEqual(t, "deletecollection", verb)
		if !strings.HasPrefix(resource, "*/") && !strings.HasPrefix(resource, "console.openshift.io/") {
			require.True(t, known.Has(resource), "no row of olmcore.Kinds has the resource of %q", right)
		}
	}
}
