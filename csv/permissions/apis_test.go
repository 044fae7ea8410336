// SPDX-License-Identifier: Apache-2.0

package permissions_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/olmcore/olm/csv/operatorgroup"
	"github.com/olmcore/olm/csv/permissions"
	"github.com/olmcore/olm/olmcore"
)

// TestClusterRolesOfAProvidedAPI checks that names, rules and labels of the ClusterRoles are the same as in OLM. The
// owner reference has the right kind.
func TestClusterRolesOfAProvidedAPI(t *testing.T) {
	owner := []metav1.OwnerReference{{
		APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition", Name: "cools.example.com", UID: "uid-cools.example.com",
		Controller: new(false), BlockOwnerDeletion: new(false),
	}}
	// c38844a2fa17abf0 is the 64-bit FNV-1a of "Cool.v1.example.com".
	role := func(name, suffix string, rule rbacv1.PolicyRule) olmcore.Action {
		return olmcore.CreateOf(&rbacv1.ClusterRole{
			TypeMeta: metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole"},
			ObjectMeta: metav1.ObjectMeta{Name: "cools.example.com-v1-" + name, OwnerReferences: owner, Labels: map[string]string{
				"rbac.authorization.k8s.io/aggregate-to-" + suffix:                "true",
				"olm.opgroup.permissions/aggregate-to-c38844a2fa17abf0-" + suffix: "true", "olm.managed": "true",
			}},
			Rules: []rbacv1.PolicyRule{rule},
		}, olmcore.Cause{Reason: permissions.ReasonProvidedAPI, Message: "the ClusterServiceVersion provides Cool.v1.example.com"})
	}
	on := func(verbs ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{Verbs: verbs, APIGroups: []string{"example.com"}, Resources: []string{"cools"}}
	}
	want := olmcore.Result{Actions: []olmcore.Action{
		role("admin", "admin", on("*")),
		role("edit", "edit", on("create", "update", "patch", "delete")),
		role("view", "view", on("get", "list", "watch")),
		role("crdview", "view", rbacv1.PolicyRule{
			Verbs: []string{"get"}, APIGroups: []string{"apiextensions.k8s.io"}, Resources: []string{"customresourcedefinitions"}, ResourceNames: []string{"cools.example.com"},
		}),
	}}
	if diff := cmp.Diff(want, reconciled(t, newWorld("ns").input(t)).Result); diff != "" {
		t.Fatal(diff)
	}
}

// TestClusterRolesOfAPIsAreAggregatedIntoThoseOfTheGroup checks each suffix.
func TestClusterRolesOfAPIsAreAggregatedIntoThoseOfTheGroup(t *testing.T) {
	w := newWorld("ns").converge(t)
	out, err := operatorgroup.Reconcile(operatorgroup.Input{
		Now: now, OperatorGroup: w.group, ClusterServiceVersions: olmcore.Found(w.csv), ClusterRoles: olmcore.Found[*rbacv1.ClusterRole](),
	})
	require.NoError(t, err)
	aggregated := map[string][]string{}
	for _, a := range out.Actions {
		role, is := a.(olmcore.Create)
		if !is {
			continue
		}
		for _, s := range role.Object.(*rbacv1.ClusterRole).AggregationRule.ClusterRoleSelectors {
			selector, err := metav1.LabelSelectorAsSelector(&s)
			require.NoError(t, err)
			for _, o := range w.more {
				if selector.Matches(labels.Set(o.GetLabels())) {
					name := role.Object.GetName()[:len("olm.og.group.view")]
					aggregated[name] = append(aggregated[name], o.GetName())
				}
			}
		}
	}
	require.Equal(t, map[string][]string{
		"olm.og.group.admi": {"cools.example.com-v1-admin"}, "olm.og.group.edit": {"cools.example.com-v1-edit"},
		"olm.og.group.view": {"cools.example.com-v1-view", "cools.example.com-v1-crdview"},
	}, aggregated)
}

// TestClusterRolesAreCreatedOnlyForAPIsOfTheCSV checks that only APIs that belong to a Succeeded ClusterServiceVersion
// get ClusterRoles, because these are aggregated into the roles of all users.
func TestClusterRolesAreCreatedOnlyForAPIsOfTheCSV(t *testing.T) {
	all := []string{
		"create ClusterRole cools.example.com-v1-admin", "create ClusterRole cools.example.com-v1-edit",
		"create ClusterRole cools.example.com-v1-view", "create ClusterRole cools.example.com-v1-crdview",
	}
	ice := []string{"create ClusterRole ices-v1-admin", "create ClusterRole ices-v1-edit", "create ClusterRole ices-v1-view"}
	serves := func(w *world, name string, services ...olmcore.Object) {
		w.csv.Spec.CustomResourceDefinitions.Owned, w.crd = nil, nil
		w.csv.Spec.APIServiceDefinitions.Owned = []v1alpha1.APIServiceDescription{{Name: name, Group: "ice.example.com", Version: "v1", Kind: "Ice", DeploymentName: "cool"}}
		w.more = append(w.more, services...)
	}
	of := func(group string) func(w *world) {
		return func(w *world) {
			w.crd = definition("cools", group, "v1")
			w.csv.Spec.CustomResourceDefinitions.Owned[0].Name = "cools." + group
		}
	}
	for title, c := range map[string]struct {
		change func(w *world)
		want   []string
	}{
		"Succeeded":                     {func(*world) {}, all},
		"not Succeeded yet":             {func(w *world) { hold(w.csv, v1alpha1.CSVPhaseInstalling, "InstallSucceeded", "", 0) }, nil},
		"there is no OperatorGroup":     {func(w *world) { w.group = nil }, all},
		"the CRD is missing":            {func(w *world) { w.crd = nil }, nil},
		"the CRD is being deleted":      {func(w *world) { w.crd.DeletionTimestamp, w.crd.Finalizers = ago(0), []string{"x"} }, nil},
		"the CRD lacks the version":     {func(w *world) { w.crd.Spec.Versions[0].Name = "v2" }, nil},
		"it came with another operator": {func(w *world) { w.crd.Annotations = nil }, []string{"report APINotRecorded"}},
		"with a CSV of another namespace": {
			func(w *world) { w.crd.Annotations["operatorframework.io/installed-alongside-1"] = "x/cool.v1" }, []string{"report APINotRecorded"},
		},
		"recorded in its labels":     {func(w *world) { w.crd.Annotations, w.crd.Labels = nil, newWorld("").role.Labels }, all},
		"an API group of Kubernetes": {of("discovery.k8s.io"), []string{"report APINotRecorded"}},
		"an API group without a dot": {of("apps"), []string{"report APINotRecorded"}},
		"an API group of OLM":        {of("operators.coreos.com"), []string{"report APINotRecorded"}},
		"a group of a Kubernetes project": {
			of("snapshot.storage.k8s.io"), []string{"create ClusterRole cools.snapshot.storage.k8s.io-v1-admin", "create ClusterRole cools.snapshot.storage.k8s.io-v1-edit", "create ClusterRole cools.snapshot.storage.k8s.io-v1-view", "create ClusterRole cools.snapshot.storage.k8s.io-v1-crdview"},
		},
		"it is listed twice": {
			func(w *world) { d := &w.csv.Spec.CustomResourceDefinitions; d.Owned = append(d.Owned, d.Owned[0]) }, all,
		},
		"it is only required": {
			func(w *world) { d := &w.csv.Spec.CustomResourceDefinitions; d.Required, d.Owned = d.Owned, nil }, nil,
		},
		"it has an APIService": {func(w *world) { serves(w, "ices", service("v1", "ice.example.com")) }, ice},
		"a missing APIService": {func(w *world) { serves(w, "ices") }, nil},
		"an APIService that is deleted": {func(w *world) {
			s := service("v1", "ice.example.com")
			s.DeletionTimestamp, s.Finalizers = ago(0), []string{"x"}
			serves(w, "ices", s)
		}, nil},
		"an APIService of another": {
			func(w *world) { s := service("v1", "ice.example.com"); s.Labels = nil; serves(w, "ices", s) }, []string{"report APINotRecorded"},
		},
		"in an API group of another": {func(w *world) {
			s := service("v2", "ice.example.com")
			s.Labels = nil
			serves(w, "ices", service("v1", "ice.example.com"), s)
		}, []string{"report APINotRecorded"}},
		"beside other API groups": {func(w *world) {
			s := service("v2", "fire.example.com")
			s.Labels = nil
			serves(w, "ices", service("v1", "ice.example.com"), s)
		}, ice},
		"the resource is *": {func(w *world) { serves(w, "*", service("v1", "ice.example.com")) }, []string{"report APINotRecorded"}},
		"the resource is a subresource": {
			func(w *world) { serves(w, "ices/status", service("v1", "ice.example.com")) }, []string{"report APINotRecorded"},
		},
		"the resource is empty": {func(w *world) { serves(w, "", service("v1", "ice.example.com")) }, nil},
		"a user has a role of the name": {
			func(w *world) { w.more = append(w.more, clusterRole("cools.example.com-v1-edit", nil)) },
			[]string{all[0], all[2], all[3], "report NameConflict"},
		},
		"OLM created it, wrong kind": {
			func(w *world) { w.converge(t); misspell(w) }, []string{"update ClusterRole cools.example.com-v1-edit"},
		},
		"OLM created it, lower case": {func(w *world) { w.converge(t); inLowerCase(w) }, nil},
		"lower case and other rules": {
			func(w *world) { w.converge(t); inLowerCase(w).Rules = nil }, []string{"update ClusterRole cools.example.com-v1-edit"}},
		"its rules were changed": {func(w *world) {
			w.converge(t)
			find[*rbacv1.ClusterRole](w, "", "cools.example.com-v1-view").Rules = nil
		}, []string{"update ClusterRole cools.example.com-v1-view"}},
		"the CRD was recreated": {
			func(w *world) { w.converge(t); w.crd.UID = "again" }, []string{"update ClusterRole cools.example.com-v1-admin", "update ClusterRole cools.example.com-v1-edit", "update ClusterRole cools.example.com-v1-view", "update ClusterRole cools.example.com-v1-crdview"},
		},
		"nothing changed":                  {func(w *world) { w.converge(t) }, nil},
		"the API is not provided any more": {func(w *world) { w.converge(t); w.csv.Spec.CustomResourceDefinitions.Owned = nil }, nil},
		"the CSV is being deleted":         {func(w *world) { w.converge(t); w.csv.DeletionTimestamp = ago(0) }, nil},
	} {
		t.Run(title, func(t *testing.T) {
			w := newWorld("ns")
			c.change(w)
			in := w.input(t)
			res := reconciled(t, in).Result
			reported, err := permissions.Assess(in)
			require.NoError(t, err)
			require.Equal(t, c.want, lines(olmcore.Result{Actions: res.Actions, Diagnostics: reported}))
			for _, a := range res.Actions {
				require.Nil(t, a.Identity(), "the controller writes them, because the CustomResourceDefinition owns them")
			}
		})
	}
}

// TestAPIsOfManualDefinitionsAreReported checks that an operator is at rest if a user created its
// CustomResourceDefinitions. Assess always reports why its APIs have no ClusterRoles. Reconcile reports it together
// with writes.
func TestAPIsOfManualDefinitionsAreReported(t *testing.T) {
	want := []olmcore.Diagnostic{{
		Severity: olmcore.Info, Reason: permissions.ReasonAPINotRecorded, Path: "spec.customresourcedefinitions.owned",
		Target:  olmcore.Ref{APIVersion: "operators.coreos.com/v1alpha1", Kind: "ClusterServiceVersion", Namespace: "ns", Name: "cool.v1", UID: newWorld().csv.UID},
		Message: "no ClusterRoles are created for Cool.v1.example.com: CustomResourceDefinition cools.example.com has no record that an InstallPlan installed it with this ClusterServiceVersion",
	}}
	for name, written := range map[string][]string{"": {"create ClusterRole " + newWorld().role.Name}, "ns": nil} {
		t.Run("targets "+name, func(t *testing.T) {
			w := newWorld(name)
			w.crd.Annotations = nil
			first := reconciled(t, w.input(t)).Result
			require.Equal(t, written, lines(olmcore.Result{Actions: first.Actions}))
			if written != nil {
				require.Empty(t, cmp.Diff(want, first.Diagnostics))
			}
			in := w.converge(t).input(t)
			out := reconciled(t, in)
			require.Equal(t, olmcore.Result{}, out.Result)
			require.NotNil(t, out.Checkpoint)
			reported, err := permissions.Assess(in)
			require.NoError(t, err)
			require.Empty(t, cmp.Diff(want, reported))
		})
	}
}

func clusterRole(name string, labels map[string]string) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "user", ResourceVersion: "1", Labels: labels}}
}

// inLowerCase sets the owner reference of a ClusterRole as OLM writes it, and returns the ClusterRole.
func inLowerCase(w *world) *rbacv1.ClusterRole {
	role := find[*rbacv1.ClusterRole](w, "", "cools.example.com-v1-edit")
	role.OwnerReferences[0].Kind = "customresourcedefinition"
	return role
}

// TestUpdatesCorrectTheKindOfTheOwner checks that an update of the rules also corrects the kind of the owner reference.
func TestUpdatesCorrectTheKindOfTheOwner(t *testing.T) {
	w := newWorld("ns").converge(t)
	want := find[*rbacv1.ClusterRole](w, "", "cools.example.com-v1-edit").DeepCopy()
	inLowerCase(w).Rules = nil
	w.converge(t)
	got := find[*rbacv1.ClusterRole](w, "", "cools.example.com-v1-edit")
	got.ResourceVersion = want.ResourceVersion
	require.Empty(t, cmp.Diff(want, got))
}

// misspell sets the owner reference of a ClusterRole as OLM wrote it for a CustomResourceDefinition that was created
// again.
func misspell(w *world) {
	role := find[*rbacv1.ClusterRole](w, "", "cools.example.com-v1-edit")
	role.OwnerReferences[0].Kind, role.OwnerReferences[0].UID = "customresourcedefinition", "before"
}

// TestUnresolvableOwnersAreReplaced checks that other owner references stay.
func TestUnresolvableOwnersAreReplaced(t *testing.T) {
	w := newWorld("ns").converge(t)
	misspell(w)
	role := find[*rbacv1.ClusterRole](w, "", "cools.example.com-v1-edit")
	other := metav1.OwnerReference{APIVersion: "v1", Kind: "Namespace", Name: "other", UID: "other"}
	role.OwnerReferences = append(role.OwnerReferences, other)
	w.converge(t)
	after := find[*rbacv1.ClusterRole](w, "", "cools.example.com-v1-edit").OwnerReferences
	require.Len(t, after, 2)
	require.Equal(t, other, after[0])
	require.Equal(t, "CustomResourceDefinition", after[1].Kind)
	require.Equal(t, w.crd.UID, after[1].UID)
}

func TestRejectedWritesAreReportedAndRetriedWithBackoff(t *testing.T) {
	w := newWorld("ns")
	in := w.input(t)
	edit := olmcore.Key{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "cools.example.com-v1-edit"}
	for class, wait := range map[olmcore.ErrorClass]time.Duration{
		olmcore.Forbidden: 110 * time.Second, olmcore.Invalid: 110 * time.Second, olmcore.Webhook: 110 * time.Second,
		olmcore.Transient: 0, olmcore.Conflict: 0, olmcore.ClassNone: 0,
	} {
		in.LastRun = olmcore.LastResults{edit: {Class: class, Message: "not you", Count: 2, First: now.Add(-time.Minute), Last: now.Add(-10 * time.Second)}}
		res := reconciled(t, in).Result
		require.Equal(t, wait, res.RequeueAfter, class)
		if wait == 0 {
			require.Len(t, res.Actions, 4)
			continue
		}
		require.Len(t, res.Actions, 3)
		require.Equal(t, permissions.ReasonRefused, res.Diagnostics[0].Reason)
		require.Equal(t, "the API server rejected the last write (create): not you", res.Diagnostics[0].Message)
		in.Now = now.Add(wait)
		require.Len(t, reconciled(t, in).Actions, 4)
		in.Now = now
	}
}
