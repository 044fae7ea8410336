// SPDX-License-Identifier: Apache-2.0

package permissions_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/csv/permissions"
	"github.com/olmcore/olm/internal/csvtest"
	"github.com/olmcore/olm/olmcore"
)

// deletePlan deletes the InstallPlan, as OLM deletes old ones.
func (w *world) deletePlan() { w.plan = nil }

// target changes the targets of the OperatorGroup. Copied CSVs in other namespaces are deleted with the objects that
// they own.
func (w *world) target(namespaces ...string) {
	w.group.Status.Namespaces = namespaces
	w.group.Spec.TargetNamespaces = slices.DeleteFunc(slices.Clone(namespaces), func(n string) bool { return n == "" })
	all := slices.Equal(namespaces, []string{""})
	w.more = slices.DeleteFunc(w.more, func(o olmcore.Object) bool {
		n := o.GetNamespace()
		return n != "" && n != "ns" && !all && !slices.Contains(namespaces, n)
	})
	for _, n := range namespaces {
		if n != "" && n != "ns" && find[*v1alpha1.ClusterServiceVersion](w, n, "cool.v1") == nil {
			w.more = append(w.more, copyIn(n))
		}
	}
}

// requireGranted checks that the permission of the world is granted in the whole cluster or in some namespaces, and
// nowhere else.
func (w *world) requireGranted(t *testing.T, where ...string) {
	t.Helper()
	var holds []string
	for _, o := range w.more {
		switch b := o.(type) {
		case *rbacv1.ClusterRoleBinding:
			if role := find[*rbacv1.ClusterRole](w, "", b.RoleRef.Name); b.Name == w.role.Name && role != nil && len(role.Rules) > 0 {
				holds = append(holds, "")
			}
		case *rbacv1.RoleBinding:
			if role := find[*rbacv1.Role](w, b.Namespace, b.RoleRef.Name); b.Name == w.role.Name && role != nil && len(role.Rules) > 0 {
				holds = append(holds, b.Namespace)
			}
		}
	}
	slices.Sort(holds)
	if slices.Equal(w.group.Status.Namespaces, []string{""}) { // grants in namespaces are deleted with the copied CSVs
		holds = slices.DeleteFunc(holds, func(n string) bool { return n != "" })
	}
	require.ElementsMatch(t, where, holds)
}

// TestGrantedPermissionsFollowTheTargets checks that a permission that was granted once is granted in further targets
// of the OperatorGroup, although its InstallPlan was deleted. It is withdrawn where the OperatorGroup has no targets
// any more.
func TestGrantedPermissionsFollowTheTargets(t *testing.T) {
	all := []string{""}
	for name, c := range map[string]struct {
		from   []string
		change func(w *world)
		to     []string
	}{
		"a namespace is added":              {[]string{"a"}, func(*world) {}, []string{"a", "b"}},
		"another namespace":                 {[]string{"a"}, func(*world) {}, []string{"b"}},
		"to all namespaces":                 {[]string{"a"}, func(*world) {}, all},
		"from all to two":                   {all, func(*world) {}, []string{"a"}},
		"from all to its own":               {all, func(*world) {}, []string{"ns"}},
		"to its own and back to all":        {all, func(w *world) { w.target("ns") }, all},
		"to some and back to all":           {all, func(w *world) { w.target("a", "b") }, all},
		"to its own and back to some":       {[]string{"a"}, func(w *world) { w.target("ns") }, []string{"a"}},
		"from all, its own, to some":        {all, func(w *world) { w.target("ns") }, []string{"b"}},
		"the copied CSV is recreated":       {[]string{"a"}, copyAgain, []string{"a"}},
		"its bindings are lost":             {[]string{"a", "b"}, loseBindings, []string{"a", "b"}},
		"its binding is lost":               {all, loseBindings, all},
		"the Roles in targets are emptied":  {[]string{"a"}, emptyRoles, []string{"a"}},
		"the ClusterRole is emptied":        {all, emptyRoles, all},
		"the ClusterRole is lost":           {all, loseClusterRole, all},
		"its record is lost":                {[]string{"a"}, loseClusterRole, []string{"a", "b"}},
		"the operator fails, then installs": {[]string{"a"}, installAgain, []string{"a", "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := withoutAPIs("ns")
			w.target(c.from...)
			w.converge(t)
			w.deletePlan()
			require.Equal(t, olmcore.Result{}, reconciled(t, w.input(t)).Result, "no plan is needed at rest")
			c.change(w)
			w.converge(t)
			w.target(c.to...)
			w.converge(t)
			w.requireGranted(t, slices.DeleteFunc(slices.Clone(c.to), func(n string) bool { return n == "ns" })...)
			require.Equal(t, olmcore.Result{}, reconciled(t, w.input(t)).Result)
		})
	}
}

// copyAgain creates the copied CSV in namespace a again, after all objects that it owned were deleted.
func copyAgain(w *world) {
	w.target("ns")
	w.target("a")
	w.more[len(w.more)-1].SetUID("again")
}

func installAgain(w *world) { hold(w.csv, v1alpha1.CSVPhaseInstallReady, "AllRequirementsMet", "", 0) }

func loseClusterRole(w *world) {
	lost := olmcore.KeyOf(find[*rbacv1.ClusterRole](w, "", w.role.Name))
	w.more = slices.DeleteFunc(w.more, func(o olmcore.Object) bool { return olmcore.KeyOf(o) == lost })
}

func loseBindings(w *world) {
	w.more = slices.DeleteFunc(w.more, func(o olmcore.Object) bool { return strings.HasSuffix(olmcore.KeyOf(o).Kind, "RoleBinding") })
}

func emptyRoles(w *world) {
	for _, o := range w.more {
		switch o := o.(type) {
		case *rbacv1.Role:
			o.Rules = nil
		case *rbacv1.ClusterRole:
			o.Rules = nil
		}
	}
}

// TestPermissionsGrantedByOLMFollowTheTargets checks the same for permissions that OLM granted and whose InstallPlan
// was deleted. Adopting them writes nothing.
func TestPermissionsGrantedByOLMFollowTheTargets(t *testing.T) {
	for name, c := range map[string]struct {
		from string
		to   []string
	}{
		"from a namespace to two": {"a", []string{"a", "b"}}, "from a namespace to all": {"a", []string{""}},
		"from all to one": {"", []string{"a"}}, "from all to its own": {"", []string{"ns"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := withoutAPIs(c.from)
			w.liftAsOLM(c.from)
			w.deletePlan()
			require.Equal(t, olmcore.Result{}, reconciled(t, w.input(t)).Result)
			if c.to[0] == "" { // the copies stay
				w.group.Status.Namespaces = c.to
				reported := lines(reconciled(t, w.input(t)).Result)
				require.Equal(t, []string{"report PermissionNotApproved"}, reported, "a tenant of the namespace may write Roles there")
				return
			}
			w.target(c.to...)
			w.converge(t)
			w.requireGranted(t, slices.DeleteFunc(slices.Clone(c.to), func(n string) bool { return n == "ns" })...)
			if c.from == "" {
				w.target("ns")
				w.converge(t)
				w.target("")
				w.converge(t)
				w.requireGranted(t, "")
			}
		})
	}
}

// TestInstallPlansProvePermissions checks which InstallPlans prove a permission.
func TestInstallPlansProvePermissions(t *testing.T) {
	reference := `{"kind":"ConfigMap","name":"x","namespace":"olm","catalogSourceName":"c","catalogSourceNamespace":"olm"}`
	for name, change := range map[string]func(w *world){
		"a Complete plan":              func(*world) {},
		"a plan that is being deleted": func(w *world) { w.plan.DeletionTimestamp, w.plan.Finalizers = ago(0), []string{"x"} },
		"a plan that failed later":     func(w *world) { w.plan.Status.Phase = v1alpha1.InstallPlanPhaseFailed },
		"a plan that is Installing":    func(w *world) { w.plan.Status.Phase = v1alpha1.InstallPlanPhaseInstalling },
		"a Role that existed":          func(w *world) { w.step("Role").Status = v1alpha1.StepStatusPresent },
		"a complete plan":              func(w *world) { w.step("Role").Status = "" },
		"a manifest with kind": func(w *world) {
			w.replaceManifest("Role", `{"metadata"`, `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata"`)
		},
		"references to unpacked bundles": func(w *world) {
			w.step("Role").Resource.Manifest, w.step("RoleBinding").Resource.Manifest = reference, reference
		},
		"a plan without the RoleBinding": func(w *world) { w.step("RoleBinding").Resource.Kind = "Secret" },
		"a plan of several versions": func(w *world) {
			w.plan.Status.Plan = append([]*v1alpha1.Step{nil, {Resolving: "other.v1"}}, w.plan.Status.Plan...)
		},
		"beside a waiting plan":    func(w *world) { waiting(w) },
		"approved, then withdrawn": func(w *world) { w.plan.Spec.Approval, w.plan.Spec.Approved = v1alpha1.ApprovalManual, false },
	} {
		t.Run(name, func(t *testing.T) {
			w := withoutAPIs("")
			change(w)
			w.converge(t)
			w.requireGranted(t, "")
		})
	}
}

// waiting adds an InstallPlan with the same content that is not approved.
func waiting(w *world) {
	p := w.plan.DeepCopy()
	p.Name, p.UID, p.Status.Phase = "install-0", "install-0", v1alpha1.InstallPlanPhaseRequiresApproval
	for _, s := range p.Status.Plan {
		s.Status = v1alpha1.StepStatusUnknown
	}
	w.more = append(w.more, p)
}

// TestSuccessorsKeepThePermissionsOfTheirPredecessor checks that a version without an InstallPlan gets the permissions
// that its predecessor has in the whole cluster, for the same ServiceAccount.
func TestSuccessorsKeepThePermissionsOfTheirPredecessor(t *testing.T) {
	onlyGet := rbacv1.PolicyRule{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods"}}
	for name, rules := range map[string][]rbacv1.PolicyRule{"the same": {pods}, "fewer rules": {onlyGet}} {
		for _, uid := range []string{"", "uid-cool.v0"} {
			t.Run(name+uid, func(t *testing.T) {
				w := withoutAPIs("")
				w.claim("cool", rules...)
				w.install()
				w.deletePlan()
				w.converge(t)
				w.requireGranted(t, "")
			})
		}
	}
	w := withoutAPIs("a")
	w.claim("cool", pods)
	w.deletePlan()
	w.more = append(w.more, copyIn("a"))
	w.more[0].(*rbacv1.ClusterRole).Rules = nil // it is a record
	w.converge(t)
	w.requireGranted(t, "a")
}

// TestAdministratorsAllowPermissionsByAnnotation checks that the command in the Diagnostic is sufficient, and that it
// keeps the other values of the annotation.
func TestAdministratorsAllowPermissionsByAnnotation(t *testing.T) {
	w := withoutAPIs("a")
	w.more = []olmcore.Object{copyIn("a")}
	w.addPermission("cool", secrets)
	w.addPermission("mine", pods)
	w.forge()
	w.deletePlan()
	names := []string{}
	for _, d := range reconciled(t, w.input(t)).Diagnostics {
		names = append(names, d.Target.Name)
	}
	require.Len(t, names, 3)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns", UID: "ns", ResourceVersion: "1", Annotations: map[string]string{
		permissions.AnnotationAllowed: "not-a-digest,\x1b[2J, " + strings.Repeat("0", 64),
	}}}
	w.put(namespace)
	for i := range 3 {
		reported := slices.DeleteFunc(reconciled(t, w.input(t)).Diagnostics, func(d olmcore.Diagnostic) bool {
			return d.Reason == permissions.ReasonInvalidApproval
		})
		require.Len(t, reported, 3-i)
		_, command, found := strings.Cut(reported[0].Message, "run `kubectl annotate namespace ns "+permissions.AnnotationAllowed+"=")
		require.True(t, found, reported[0].Message)
		value, isWhole := strings.CutSuffix(command, " --overwrite`")
		require.True(t, isWhole)
		require.Contains(t, value, strings.Repeat("0", 64)+",")
		namespace = namespace.DeepCopy()
		namespace.Annotations[permissions.AnnotationAllowed] = value
		w.put(namespace)
		w.converge(t)
		require.NotNil(t, find[*rbacv1.RoleBinding](w, "a", reported[0].Target.Name))
	}
	require.Equal(t, olmcore.Result{}, reconciled(t, w.input(t)).Result)
	namespace.Annotations = nil
	require.Equal(t, olmcore.Result{}, reconciled(t, w.input(t)).Result, "existing grants stay")
}

// TestInvalidDigestsAreReported checks that each is named, cut and quoted, and that valid digests beside them have an
// effect.
func TestInvalidDigestsAreReported(t *testing.T) {
	w := withoutAPIs("")
	w.deletePlan()
	digest := approvalOf(w)
	values := []string{"x\x1b", strings.Repeat("long", 100), strings.ToUpper(digest), digest[1:], "", "sixth"}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns", UID: "ns", ResourceVersion: "1"}}
	namespace.Annotations = map[string]string{permissions.AnnotationAllowed: strings.Join(values, ",")}
	w.put(namespace)
	reported := reconciled(t, w.input(t)).Diagnostics
	require.Len(t, reported, 2)
	i := slices.IndexFunc(reported, func(d olmcore.Diagnostic) bool { return d.Reason == permissions.ReasonInvalidApproval })
	require.Contains(t, reported[i].Message, `"x\x1b", "long`)
	require.Contains(t, reported[i].Message, ", 1 more")
	require.Less(t, len(reported[i].Message), 700)
	namespace.Annotations[permissions.AnnotationAllowed] += ", " + digest
	w.converge(t)
	w.requireGranted(t, "")
}

func TestEachPermissionNeedsItsOwnProof(t *testing.T) {
	for _, target := range []string{"", "a"} {
		w := withoutAPIs(target)
		w.more = []olmcore.Object{copyIn("a")}
		w.addPermission("cool", secrets)
		refused := w.forged().Name
		granted := w.role.Name
		w.forge()
		for range 3 {
			w.apply(reconciled(t, w.input(t)).Actions)
		}
		for _, o := range w.more {
			if kind := olmcore.KeyOf(o).Kind; o.GetNamespace() != "ns" && strings.HasPrefix(kind, "ClusterRole") {
				require.Equal(t, granted, o.GetName())
			}
		}
		if target == "" {
			require.NotNil(t, find[*rbacv1.ClusterRoleBinding](w, "", granted))
		} else {
			require.NotNil(t, find[*rbacv1.RoleBinding](w, "a", granted))
			require.Nil(t, find[*rbacv1.Role](w, "a", refused))
		}
		requireNotApproved(t, reconciled(t, w.input(t)).Diagnostics, refused)
	}
}

// TestUnreadInstallPlansAreReported checks that nothing is granted or withdrawn.
func TestUnreadInstallPlansAreReported(t *testing.T) {
	w := withoutAPIs("")
	w.converge(t)
	w.addPermission("cool", secrets)
	w.forge()
	obsolete := find[*rbacv1.ClusterRole](w, "", newWorld().role.Name)
	w.csv.Spec.InstallStrategy.StrategySpec.Permissions = w.csv.Spec.InstallStrategy.StrategySpec.Permissions[1:]
	require.Contains(t, lines(reconciled(t, w.input(t)).Result), "delete ClusterRole "+obsolete.Name)
	for _, change := range []func(*permissions.Input){
		func(in *permissions.Input) { in.InstallPlans = olmcore.Observed[*v1alpha1.InstallPlan]{} },
		func(in *permissions.Input) { in.Namespaces = olmcore.Observed[*corev1.Namespace]{} },
	} {
		in := w.input(t)
		change(&in)
		require.Equal(t, []string{"report NotObserved"}, lines(reconciled(t, in).Result))
	}
}

// counter is a Reader that counts the reads of kinds.
type counter struct {
	olmcore.Reader
	reads map[string]int
}

func (c counter) List(
	ctx context.Context, kind schema.GroupVersionKind, namespace string, selector labels.Selector,
) ([]olmcore.Object, error) {
	c.reads[kind.Kind]++
	return c.Reader.List(ctx, kind, namespace, selector)
}

func (c counter) Get(ctx context.Context, kind schema.GroupVersionKind, namespace, name string) (olmcore.Object, error) {
	c.reads[kind.Kind]++
	return c.Reader.Get(ctx, kind, namespace, name)
}

// TestInstallPlansAreReadOnlyForNewPermissions checks that Gather reads neither InstallPlans nor the Namespace for an
// operator at rest.
func TestInstallPlansAreReadOnlyForNewPermissions(t *testing.T) {
	reads := func(w *world) map[string]int {
		snapshot, err := olmcore.NewSnapshot(w.objects(), olmcore.Everything)
		require.NoError(t, err)
		c := counter{snapshot, map[string]int{}}
		_, err = permissions.Gather(context.Background(), c, key)
		require.NoError(t, err)
		return c.reads
	}
	for _, targets := range [][]string{{""}, {"a", "b"}, {"ns"}} {
		w := newWorld(targets...)
		w.csv.Spec.Replaces = "cool.v0"
		w.more = []olmcore.Object{copyIn("a"), copyIn("b")}
		first := reads(w)
		isNew := targets[0] != "ns"
		require.Equal(t, isNew, first["InstallPlan"] == 1, first)
		require.Equal(t, isNew, first["Namespace"] == 1, first)
		atRest := reads(w.converge(t))
		require.Zero(t, atRest["InstallPlan"]+atRest["Namespace"])
		if isNew {
			maps.DeleteFunc(first, func(kind string, _ int) bool { return kind == "InstallPlan" || kind == "Namespace" })
			first["ClusterRole"]-- // the ClusterRoles of its predecessor
		}
		require.Equal(t, first, atRest, fmt.Sprint(targets))
	}
}

// TestProofsAffectTheCSV checks that Affected returns the CSV for an InstallPlan and for an approval.
func TestProofsAffectTheCSV(t *testing.T) {
	w := withoutAPIs("")
	require.Equal(t, []types.NamespacedName{key}, permissions.Affected(w.plan))
	w.plan.Status = v1alpha1.InstallPlanStatus{}
	require.Empty(t, permissions.Affected(w.plan), "a plan without status proves nothing")
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns", UID: "ns", ResourceVersion: "1"}}
	require.Equal(t, []types.NamespacedName{{Namespace: "ns"}}, permissions.Affected(namespace))
	labelled := namespace.DeepCopy()
	labelled.Labels = map[string]string{"a": "b"}
	require.False(t, isConcerned(namespace, labelled, w.csv))
	allowed := labelled.DeepCopy()
	allowed.Annotations = map[string]string{permissions.AnnotationAllowed: approvalOf(w)}
	require.True(t, isConcerned(labelled, allowed, w.csv))
	require.True(t, isConcerned(nil, allowed, w.csv))
}

// TestObjectsOfAnEarlierCSVProveNothing checks that objects that an earlier CSV of the same name left behind do not
// become a proof for a CSV that a tenant created.
func TestObjectsOfAnEarlierCSVProveNothing(t *testing.T) {
	for name, c := range map[string]struct{ isRecord, isBound bool }{
		"a ClusterRole": {}, "a record": {isRecord: true}, "a ClusterRole and its binding": {isBound: true},
	} {
		for _, targets := range [][]string{{"a"}, {""}} {
			t.Run(name+"/"+targets[0], func(t *testing.T) {
				w := withoutAPIs(targets...)
				w.deletePlan()
				left := liftedOf("cool.v1", "before")
				if c.isRecord {
					left[0].(*rbacv1.ClusterRole).Rules = nil
				}
				if !c.isBound {
					left = left[:1]
				}
				w.more = append(left, copyIn("a"))
				for range 4 {
					res := reconciled(t, w.input(t)).Result
					for _, line := range lines(res) {
						require.False(t, strings.HasPrefix(line, "create") || strings.HasPrefix(line, "update"), line)
					}
					w.apply(res.Actions)
				}
				requireNotApproved(t, reconciled(t, w.input(t)).Diagnostics, w.role.Name)
			})
		}
	}
}

// TestARecreatedCSVGetsThePermissionsOfItsPlan checks that a CSV that a tenant deletes and creates again gets the
// permissions of its InstallPlan for the same ServiceAccount, and no other permission.
func TestARecreatedCSVGetsThePermissionsOfItsPlan(t *testing.T) {
	for _, target := range []string{"", "a"} {
		w := withoutAPIs("ns")
		w.target(target)
		w.converge(t)
		w.target("ns") // the copied CSVs are deleted
		w.target(target)
		w.csv.UID = "uid-again"
		w.addPermission("cool", secrets)
		w.addPermission("mine", pods)
		proven := w.role.Name
		w.forge()
		for range 3 {
			w.apply(reconciled(t, w.input(t)).Actions)
		}
		for _, o := range w.more {
			isGranted := o.GetNamespace() != "ns" && olmcore.KeyOf(o).Group == rbacv1.GroupName
			require.True(t, !isGranted || o.GetName() == proven, olmcore.KeyOf(o))
		}
		require.Equal(t, "uid-again", find[*rbacv1.ClusterRole](w, "", proven).Labels[olmcore.LabelOwnerUID])
	}
}

// TestASmallerPermissionNeedsNoNewProof checks that a permission with a part of the rules replaces the one that was
// granted, although writes are lost.
func TestASmallerPermissionNeedsNoNewProof(t *testing.T) {
	for lost := range 6 {
		w := withoutAPIs("")
		w.converge(t)
		w.deletePlan()
		obsolete := w.role.Name
		w.csv.Spec.InstallStrategy.StrategySpec.Permissions[0].Rules[0].Verbs = []string{"get"}
		w.install()
		w.deletePlan()
		n := 0
		for range 6 {
			for _, a := range reconciled(t, w.input(t)).Actions {
				if n++; n != lost {
					w.apply([]olmcore.Action{a})
				}
			}
		}
		w.requireGranted(t, "")
		require.Nil(t, find[*rbacv1.ClusterRole](w, "", obsolete))
		require.Nil(t, find[*rbacv1.ClusterRoleBinding](w, "", obsolete))
	}
}

// TestLostWritesKeepTheProof narrows and widens an OperatorGroup after the InstallPlan was deleted, and loses one write
// after the other.
func TestLostWritesKeepTheProof(t *testing.T) {
	for _, c := range [][][]string{{{""}, {"a"}, {""}}, {{""}, {"ns"}, {"a"}}, {{"a"}, {"b"}, {""}}, {{"a"}, {"ns"}, {"a", "b"}}} {
		for lost := range 10 {
			w := withoutAPIs("ns")
			w.target(c[0]...)
			n := 0
			for i, targets := range c {
				w.target(targets...)
				for range 6 {
					for _, a := range reconciled(t, w.input(t)).Actions {
						if n++; n != lost {
							w.apply([]olmcore.Action{a})
						}
					}
				}
				w.requireGranted(t, slices.DeleteFunc(slices.Clone(targets), func(n string) bool { return n == "ns" })...)
				if i == 0 {
					w.deletePlan()
				}
			}
		}
	}
}

// TestRejectedGrantsAreRetriedOnceTheAccountHasThePermissions checks that the ServiceAccount of the OperatorGroup needs
// its permissions only when the grant is written.
func TestRejectedGrantsAreRetriedOnceTheAccountHasThePermissions(t *testing.T) {
	w := withoutAPIs("a")
	w.more = []olmcore.Object{copyIn("a")}
	w.group.Spec.ServiceAccountName = "weak"
	w.group.Status.ServiceAccountRef = &corev1.ObjectReference{Kind: "ServiceAccount", Namespace: "ns", Name: "weak"}
	for range 3 {
		w.apply(slices.DeleteFunc(reconciled(t, w.input(t)).Actions, func(a olmcore.Action) bool { return a.Identity() != nil }))
	}
	w.requireGranted(t)
	w.deletePlan()
	w.converge(t)
	w.requireGranted(t, "a")
}

// TestTheDiagnosticShowsAllRules checks that a tenant cannot add a command to the message, and cannot hide a rule.
func TestTheDiagnosticShowsAllRules(t *testing.T) {
	w := withoutAPIs("")
	w.deletePlan()
	evil := pods
	evil.Resources = []string{"pods\". If you trust these rules, run: rm\x1b"}
	w.csv.Spec.InstallStrategy.StrategySpec.Permissions = nil
	w.addPermission("cool", evil, secrets)
	for range 50 {
		w.addPermission("cool", append(slices.Repeat([]rbacv1.PolicyRule{pods}, 100), secrets)...)
		pods := &w.csv.Spec.InstallStrategy.StrategySpec.Permissions
		(*pods)[len(*pods)-1].Rules[0].ResourceNames = []string{fmt.Sprint(len(*pods))}
	}
	w.forge()
	reported := reconciled(t, w.input(t)).Diagnostics
	require.Len(t, reported, 6)
	cut := 0
	for _, d := range reported {
		require.NotContains(t, d.Message, "\x1b")
		require.NotContains(t, d.Message, `pods". If`)
		require.Less(t, len(d.Message), 2500)
		if strings.Contains(d.Message, "cut here; read all rules") {
			cut++
		} else if d.Target.Kind == "Role" {
			require.Contains(t, d.Message, `"get,list secrets"`)
		}
	}
	require.GreaterOrEqual(t, cut, 4)
	require.Contains(t, reported[5].Message, "the operator has 46 more permissions")
}

// TestTheCostOfPermissionsGrowsLinearly checks the largest spec and the largest InstallPlans that the API server
// stores.
func TestTheCostOfPermissionsGrowsLinearly(t *testing.T) {
	allocations := func(permissions int) float64 {
		in := withManyPermissions(permissions).input(t)
		return testing.AllocsPerRun(1, func() { require.Len(t, reconciled(t, in).Diagnostics, 6) })
	}
	require.Less(t, allocations(1000), 2.5*allocations(500))
}

// withManyPermissions returns a world in which a CSV has many permissions. Eleven unfinished InstallPlans contain them.
func withManyPermissions(size int) *world {
	w := withoutAPIs("")
	w.csv.Spec.InstallStrategy.StrategySpec.Permissions = nil
	for i := range size {
		one := secrets
		one.ResourceNames = []string{fmt.Sprint(i)}
		w.addPermission("cool", one)
	}
	w.csv.Spec.Replaces = "cool.v0"
	w.more = liftedOf("cool.v0", "uid-cool.v0")
	w.forge()
	for i := range 10 {
		p := csvtest.Plan(w.csv)
		p.Name, p.UID = fmt.Sprint("install-", i+2), types.UID(fmt.Sprint(i))
		p.Status.Phase = v1alpha1.InstallPlanPhaseInstalling
		for _, s := range p.Status.Plan {
			s.Status = v1alpha1.StepStatusUnknown
		}
		w.more = append(w.more, p)
	}
	return w
}

// TestUnprovenPermissionsOfOLMAreReported checks that a permission that OLM granted for a forged Role stays, and that
// Assess reports it.
func TestUnprovenPermissionsOfOLMAreReported(t *testing.T) {
	for _, target := range []string{"", "a"} {
		w := withoutAPIs(target)
		w.liftAsOLM(target)
		reported, err := permissions.Assess(w.input(t))
		require.NoError(t, err)
		require.Empty(t, reported, "a plan proves it")
		w.deletePlan()
		require.Equal(t, olmcore.Result{}, reconciled(t, w.input(t)).Result)
		reported, err = permissions.Assess(w.input(t))
		require.NoError(t, err)
		require.Len(t, reported, 1)
		require.Equal(t, permissions.ReasonAdoptedPermission, reported[0].Reason)
		_, value, found := strings.Cut(reported[0].Message, permissions.AnnotationAllowed+"=")
		require.True(t, found, reported[0].Message)
		approval := map[string]string{permissions.AnnotationAllowed: strings.Fields(value)[0]}
		w.put(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns", UID: "ns", ResourceVersion: "1", Annotations: approval}})
		reported, err = permissions.Assess(w.input(t))
		require.NoError(t, err)
		require.Empty(t, reported)
	}
	w := withoutAPIs("a")
	w.target("a")
	w.converge(t)
	w.deletePlan()
	reported, err := permissions.Assess(w.input(t))
	require.NoError(t, err)
	require.Empty(t, reported, "the library recorded it")
}

// TestAPermissionIsRecordedBeforeItsNamespacesExist checks that an operator that is being installed keeps its proof for
// target namespaces that are created after its InstallPlan was deleted. An operator that runs gets no such record.
func TestAPermissionIsRecordedBeforeItsNamespacesExist(t *testing.T) {
	w := withoutAPIs("a")
	require.Equal(t, olmcore.Result{}, reconciled(t, w.input(t)).Result, "it is Succeeded")
	installAgain(w)
	w.converge(t)
	require.Len(t, w.more, 1)
	require.Empty(t, w.more[0].(*rbacv1.ClusterRole).Rules)
	w.deletePlan()
	require.Equal(t, olmcore.Result{}, reconciled(t, w.input(t)).Result)
	hold(w.csv, succeeded, "InstallSucceeded", "", 0)
	w.target("a")
	w.converge(t)
	w.requireGranted(t, "a")
}

// isConcerned reports whether the change of an object concerns a ClusterServiceVersion.
func isConcerned(old, next olmcore.Object, c *v1alpha1.ClusterServiceVersion) bool {
	concerned, _ := permissions.Concerned(old, next)
	return concerned(c)
}
