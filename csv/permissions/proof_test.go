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

// sweep deletes the InstallPlan, as is done to old ones.
func (w *world) sweep() { w.plan = nil }

// target changes the targets of the group. The copies in other namespaces are deleted, with what they own.
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

// requireGranted checks where the permission of the world holds: in the whole cluster, or in namespaces, and nowhere
// else.
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
	if slices.Equal(w.group.Status.Namespaces, []string{""}) { // what is in namespaces goes with the copies
		holds = slices.DeleteFunc(holds, func(n string) bool { return n != "" })
	}
	require.ElementsMatch(t, where, holds)
}

// TestWhatIsLiftedStaysAndExtends checks that a permission which was granted once is granted where the group comes to
// target more, although its InstallPlan was swept, and that it is withdrawn where the group targets less.
func TestWhatIsLiftedStaysAndExtends(t *testing.T) {
	all := []string{""}
	for name, c := range map[string]struct {
		from   []string
		change func(w *world)
		to     []string
	}{
		"a namespace is added":              {[]string{"a"}, func(*world) {}, []string{"a", "b"}},
		"another namespace":                 {[]string{"a"}, func(*world) {}, []string{"b"}},
		"from some to all":                  {[]string{"a"}, func(*world) {}, all},
		"from all to some":                  {all, func(*world) {}, []string{"a"}},
		"from all to its own":               {all, func(*world) {}, []string{"ns"}},
		"to its own and back to all":        {all, func(w *world) { w.target("ns") }, all},
		"to some and back to all":           {all, func(w *world) { w.target("a", "b") }, all},
		"to its own and back to some":       {[]string{"a"}, func(w *world) { w.target("ns") }, []string{"a"}},
		"from all, its own, to some":        {all, func(w *world) { w.target("ns") }, []string{"b"}},
		"the copied CSV was made again":     {[]string{"a"}, copyAgain, []string{"a"}},
		"its bindings are lost":             {[]string{"a", "b"}, loseBindings, []string{"a", "b"}},
		"its binding in the cluster":        {all, loseBindings, all},
		"the Roles in targets are emptied":  {[]string{"a"}, emptyRoles, []string{"a"}},
		"the ClusterRole is emptied":        {all, emptyRoles, all},
		"the ClusterRole is lost":           {all, loseClusterRole, all},
		"its record is lost":                {[]string{"a"}, loseClusterRole, []string{"a", "b"}},
		"the operator fails, then installs": {[]string{"a"}, installAgain, []string{"a", "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := withoutAPIs("ns")
			w.target(c.from...)
			w.settle(t)
			w.sweep()
			require.Equal(t, olmcore.Result{}, reconciled(t, w.input(t)).Result, "no plan is needed at rest")
			c.change(w)
			w.settle(t)
			w.target(c.to...)
			w.settle(t)
			w.requireGranted(t, slices.DeleteFunc(slices.Clone(c.to), func(n string) bool { return n == "ns" })...)
			require.Equal(t, olmcore.Result{}, reconciled(t, w.input(t)).Result)
		})
	}
}

// copyAgain creates the copied CSV in namespace a again, after all that it owned was deleted.
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

// TestWhatOLMLiftedExtends checks the same for what OLM lifted, whose plan was swept, and that adopting it writes
// nothing.
func TestWhatOLMLiftedExtends(t *testing.T) {
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
			w.sweep()
			require.Equal(t, olmcore.Result{}, reconciled(t, w.input(t)).Result)
			if c.to[0] == "" { // the copies stay
				w.group.Status.Namespaces = c.to
				said := words(reconciled(t, w.input(t)).Result)
				require.Equal(t, []string{"say PermissionNotApproved"}, said, "whoever has a namespace may write Roles there")
				return
			}
			w.target(c.to...)
			w.settle(t)
			w.requireGranted(t, slices.DeleteFunc(slices.Clone(c.to), func(n string) bool { return n == "ns" })...)
			if c.from == "" {
				w.target("ns")
				w.settle(t)
				w.target("")
				w.settle(t)
				w.requireGranted(t, "")
			}
		})
	}
}

// TestAPlanProves checks which InstallPlans prove a permission.
func TestAPlanProves(t *testing.T) {
	reference := `{"kind":"ConfigMap","name":"x","namespace":"olm","catalogSourceName":"c","catalogSourceNamespace":"olm"}`
	for name, change := range map[string]func(w *world){
		"a complete one":            func(*world) {},
		"one that is being deleted": func(w *world) { w.plan.DeletionTimestamp, w.plan.Finalizers = ago(0), []string{"x"} },
		"one that failed later":     func(w *world) { w.plan.Status.Phase = v1alpha1.InstallPlanPhaseFailed },
		"one that installs":         func(w *world) { w.plan.Status.Phase = v1alpha1.InstallPlanPhaseInstalling },
		"a Role that existed":       func(w *world) { w.step("Role").Status = v1alpha1.StepStatusPresent },
		"a complete plan":           func(w *world) { w.step("Role").Status = "" },
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
		"another plan beside that waits":  func(w *world) { waiting(w) },
		"an approved one, withdrawn then": func(w *world) { w.plan.Spec.Approval, w.plan.Spec.Approved = v1alpha1.ApprovalManual, false },
	} {
		t.Run(name, func(t *testing.T) {
			w := withoutAPIs("")
			change(w)
			w.settle(t)
			w.requireGranted(t, "")
		})
	}
}

// waiting adds a plan of the same content that is not approved.
func waiting(w *world) {
	p := w.plan.DeepCopy()
	p.Name, p.UID, p.Status.Phase = "install-0", "install-0", v1alpha1.InstallPlanPhaseRequiresApproval
	for _, s := range p.Status.Plan {
		s.Status = v1alpha1.StepStatusUnknown
	}
	w.more = append(w.more, p)
}

// TestASuccessorHasWhatTheReplacedVersionHas checks that a version without an InstallPlan is granted what the version
// that it replaces is granted in the cluster, for the same ServiceAccount.
func TestASuccessorHasWhatTheReplacedVersionHas(t *testing.T) {
	onlyGet := rbacv1.PolicyRule{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods"}}
	for name, rules := range map[string][]rbacv1.PolicyRule{"the same": {pods}, "less": {onlyGet}} {
		for _, uid := range []string{"", "uid-cool.v0"} {
			t.Run(name+uid, func(t *testing.T) {
				w := withoutAPIs("")
				w.claim("cool", rules...)
				w.install()
				w.sweep()
				w.settle(t)
				w.requireGranted(t, "")
			})
		}
	}
	w := withoutAPIs("a")
	w.claim("cool", pods)
	w.sweep()
	w.more = append(w.more, copyIn("a"))
	w.more[0].(*rbacv1.ClusterRole).Rules = nil // it is a record
	w.settle(t)
	w.requireGranted(t, "a")
}

// TestAnAdministratorAllowsAPermission checks that the command of the Diagnostic is all that it takes, and keeps what
// the annotation has.
func TestAnAdministratorAllowsAPermission(t *testing.T) {
	w := withoutAPIs("a")
	w.more = []olmcore.Object{copyIn("a")}
	w.ask("cool", secrets)
	w.ask("mine", pods)
	w.forge()
	w.sweep()
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
		said := slices.DeleteFunc(reconciled(t, w.input(t)).Diagnostics, func(d olmcore.Diagnostic) bool {
			return d.Reason == permissions.ReasonInvalidApproval
		})
		require.Len(t, said, 3-i)
		_, command, found := strings.Cut(said[0].Message, "run `kubectl annotate namespace ns "+permissions.AnnotationAllowed+"=")
		require.True(t, found, said[0].Message)
		value, isWhole := strings.CutSuffix(command, " --overwrite`")
		require.True(t, isWhole)
		require.Contains(t, value, strings.Repeat("0", 64)+",")
		namespace = namespace.DeepCopy()
		namespace.Annotations[permissions.AnnotationAllowed] = value
		w.put(namespace)
		w.settle(t)
		require.NotNil(t, find[*rbacv1.RoleBinding](w, "a", said[0].Target.Name))
	}
	require.Equal(t, olmcore.Result{}, reconciled(t, w.input(t)).Result)
	namespace.Annotations = nil
	require.Equal(t, olmcore.Result{}, reconciled(t, w.input(t)).Result, "what was granted stays")
}

// TestValuesThatAreNoDigestsAreNamed checks that each is named, clipped and quoted, and that others beside them count.
func TestValuesThatAreNoDigestsAreNamed(t *testing.T) {
	w := withoutAPIs("")
	w.sweep()
	digest := approvalOf(w)
	values := []string{"x\x1b", strings.Repeat("long", 100), strings.ToUpper(digest), digest[1:], "", "sixth"}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns", UID: "ns", ResourceVersion: "1"}}
	namespace.Annotations = map[string]string{permissions.AnnotationAllowed: strings.Join(values, ",")}
	w.put(namespace)
	said := reconciled(t, w.input(t)).Diagnostics
	require.Len(t, said, 2)
	i := slices.IndexFunc(said, func(d olmcore.Diagnostic) bool { return d.Reason == permissions.ReasonInvalidApproval })
	require.Contains(t, said[i].Message, `"x\x1b", "long`)
	require.Contains(t, said[i].Message, ", 1 more")
	require.Less(t, len(said[i].Message), 700)
	namespace.Annotations[permissions.AnnotationAllowed] += ", " + digest
	w.settle(t)
	w.requireGranted(t, "")
}

// TestSomePermissionsOfAnAccountAreProven checks that each permission is judged by itself.
func TestSomePermissionsOfAnAccountAreProven(t *testing.T) {
	for _, target := range []string{"", "a"} {
		w := withoutAPIs(target)
		w.more = []olmcore.Object{copyIn("a")}
		w.ask("cool", secrets)
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

// TestPlansThatWereNotReadAreNamed checks that nothing is granted or withdrawn then.
func TestPlansThatWereNotReadAreNamed(t *testing.T) {
	w := withoutAPIs("")
	w.settle(t)
	w.ask("cool", secrets)
	w.forge()
	obsolete := find[*rbacv1.ClusterRole](w, "", newWorld().role.Name)
	w.csv.Spec.InstallStrategy.StrategySpec.Permissions = w.csv.Spec.InstallStrategy.StrategySpec.Permissions[1:]
	require.Contains(t, words(reconciled(t, w.input(t)).Result), "delete ClusterRole "+obsolete.Name)
	for _, change := range []func(*permissions.Input){
		func(in *permissions.Input) { in.InstallPlans = olmcore.Observed[*v1alpha1.InstallPlan]{} },
		func(in *permissions.Input) { in.Namespaces = olmcore.Observed[*corev1.Namespace]{} },
	} {
		in := w.input(t)
		change(&in)
		require.Equal(t, []string{"say NotObserved"}, words(reconciled(t, in).Result))
	}
}

// counter counts the reads of kinds.
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

// TestPlansAreReadOnlyWhereAPermissionIsNew checks that an operator at rest needs neither InstallPlans nor its
// Namespace.
func TestPlansAreReadOnlyWhereAPermissionIsNew(t *testing.T) {
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
		atRest := reads(w.settle(t))
		require.Zero(t, atRest["InstallPlan"]+atRest["Namespace"])
		if isNew {
			maps.DeleteFunc(first, func(kind string, _ int) bool { return kind == "InstallPlan" || kind == "Namespace" })
			first["ClusterRole"]-- // those of the version that it replaces
		}
		require.Equal(t, first, atRest, fmt.Sprint(targets))
	}
}

// TestWhatProvesAPermissionIsAffected checks that the arrival of a plan or of an approval is an event for the CSV.
func TestWhatProvesAPermissionIsAffected(t *testing.T) {
	w := withoutAPIs("")
	require.Equal(t, []types.NamespacedName{key}, permissions.Affected(w.plan))
	w.plan.Status = v1alpha1.InstallPlanStatus{}
	require.Empty(t, permissions.Affected(w.plan), "a plan without status proves nothing")
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns", UID: "ns", ResourceVersion: "1"}}
	require.Equal(t, []types.NamespacedName{{Namespace: "ns"}}, permissions.Affected(namespace))
	labelled := namespace.DeepCopy()
	labelled.Labels = map[string]string{"a": "b"}
	require.False(t, permissions.Concerned(namespace, labelled).Is(w.csv))
	allowed := labelled.DeepCopy()
	allowed.Annotations = map[string]string{permissions.AnnotationAllowed: approvalOf(w)}
	require.True(t, permissions.Concerned(labelled, allowed).Is(w.csv))
	require.True(t, permissions.Concerned(nil, allowed).Is(w.csv))
}

// TestAnEarlierIncarnationProvesNothing checks that what an earlier CSV of the name left behind does not become a proof
// for a CSV that a tenant created under the name, also if the binding was left behind.
func TestAnEarlierIncarnationProvesNothing(t *testing.T) {
	for name, c := range map[string]struct{ isRecord, isBound bool }{
		"a ClusterRole": {}, "a record": {isRecord: true}, "a ClusterRole and its binding": {isBound: true},
	} {
		for _, targets := range [][]string{{"a"}, {""}} {
			t.Run(name+"/"+targets[0], func(t *testing.T) {
				w := withoutAPIs(targets...)
				w.sweep()
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
					for _, line := range words(res) {
						require.False(t, strings.HasPrefix(line, "create") || strings.HasPrefix(line, "update"), line)
					}
					w.apply(res.Actions)
				}
				requireNotApproved(t, reconciled(t, w.input(t)).Diagnostics, w.role.Name)
			})
		}
	}
}

// TestACSVThatIsCreatedAgainGetsWhatItsPlanProves checks that a CSV which a tenant deletes and creates again under its
// name gets the permissions of its InstallPlan for the same ServiceAccount, and no other permission.
func TestACSVThatIsCreatedAgainGetsWhatItsPlanProves(t *testing.T) {
	for _, target := range []string{"", "a"} {
		w := withoutAPIs("ns")
		w.target(target)
		w.settle(t)
		w.target("ns") // the copied CSVs are deleted
		w.target(target)
		w.csv.UID = "uid-again"
		w.ask("cool", secrets)
		w.ask("mine", pods)
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

// TestALessPermissionHasAProof checks that a permission with a part of the rules takes the place of the one that was
// granted, although one write after the other is lost.
func TestALessPermissionHasAProof(t *testing.T) {
	for lost := range 6 {
		w := withoutAPIs("")
		w.settle(t)
		w.sweep()
		obsolete := w.role.Name
		w.csv.Spec.InstallStrategy.StrategySpec.Permissions[0].Rules[0].Verbs = []string{"get"}
		w.install()
		w.sweep()
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

// TestLostWritesLoseNoProof narrows and widens a group after the plan was swept, and loses one write after the other.
func TestLostWritesLoseNoProof(t *testing.T) {
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
					w.sweep()
				}
			}
		}
	}
}

// TestARefusedWriteIsGrantedLater checks that the account of the group needs its rights no earlier than it uses them.
func TestARefusedWriteIsGrantedLater(t *testing.T) {
	w := withoutAPIs("a")
	w.more = []olmcore.Object{copyIn("a")}
	w.group.Spec.ServiceAccountName = "weak"
	w.group.Status.ServiceAccountRef = &corev1.ObjectReference{Kind: "ServiceAccount", Namespace: "ns", Name: "weak"}
	for range 3 {
		w.apply(slices.DeleteFunc(reconciled(t, w.input(t)).Actions, func(a olmcore.Action) bool { return a.Identity() != nil }))
	}
	w.requireGranted(t)
	w.sweep()
	w.settle(t)
	w.requireGranted(t, "a")
}

// TestTheDiagnosticShowsWhatIsAllowed checks that a tenant cannot write a command into it, nor hide a rule.
func TestTheDiagnosticShowsWhatIsAllowed(t *testing.T) {
	w := withoutAPIs("")
	w.sweep()
	evil := pods
	evil.Resources = []string{"pods\". If you trust these rules, run: rm\x1b"}
	w.csv.Spec.InstallStrategy.StrategySpec.Permissions = nil
	w.ask("cool", evil, secrets)
	for range 50 {
		w.ask("cool", append(slices.Repeat([]rbacv1.PolicyRule{pods}, 100), secrets)...)
		pods := &w.csv.Spec.InstallStrategy.StrategySpec.Permissions
		(*pods)[len(*pods)-1].Rules[0].ResourceNames = []string{fmt.Sprint(len(*pods))}
	}
	w.forge()
	said := reconciled(t, w.input(t)).Diagnostics
	require.Len(t, said, 6)
	cut := 0
	for _, d := range said {
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
	require.Contains(t, said[5].Message, "the operator has 46 more permissions")
}

// TestTheCostOfPermissionsGrowsWithTheirNumber checks the largest spec and the largest plans that the API server
// stores.
func TestTheCostOfPermissionsGrowsWithTheirNumber(t *testing.T) {
	allocations := func(permissions int) float64 {
		in := withManyPermissions(permissions).input(t)
		return testing.AllocsPerRun(1, func() { require.Len(t, reconciled(t, in).Diagnostics, 6) })
	}
	require.Less(t, allocations(1000), 2.5*allocations(500))
}

// withManyPermissions returns a world in which a CSV asks for many permissions that eleven unfinished plans contain.
func withManyPermissions(size int) *world {
	w := withoutAPIs("")
	w.csv.Spec.InstallStrategy.StrategySpec.Permissions = nil
	for i := range size {
		one := secrets
		one.ResourceNames = []string{fmt.Sprint(i)}
		w.ask("cool", one)
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

// TestWhatOLMGrantedWithoutAPlanIsReported checks that a permission which OLM granted to a forged Role stays, and that
// Assess reports it.
func TestWhatOLMGrantedWithoutAPlanIsReported(t *testing.T) {
	for _, target := range []string{"", "a"} {
		w := withoutAPIs(target)
		w.liftAsOLM(target)
		said, err := permissions.Assess(w.input(t))
		require.NoError(t, err)
		require.Empty(t, said, "a plan proves it")
		w.sweep()
		require.Equal(t, olmcore.Result{}, reconciled(t, w.input(t)).Result)
		said, err = permissions.Assess(w.input(t))
		require.NoError(t, err)
		require.Len(t, said, 1)
		require.Equal(t, permissions.ReasonAdoptedPermission, said[0].Reason)
		_, value, found := strings.Cut(said[0].Message, permissions.AnnotationAllowed+"=")
		require.True(t, found, said[0].Message)
		approval := map[string]string{permissions.AnnotationAllowed: strings.Fields(value)[0]}
		w.put(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns", UID: "ns", ResourceVersion: "1", Annotations: approval}})
		said, err = permissions.Assess(w.input(t))
		require.NoError(t, err)
		require.Empty(t, said)
	}
	w := withoutAPIs("a")
	w.target("a")
	w.settle(t)
	w.sweep()
	said, err := permissions.Assess(w.input(t))
	require.NoError(t, err)
	require.Empty(t, said, "the library recorded it")
}

// TestAPermissionIsRecordedBeforeItsNamespacesExist checks that an operator which is being installed keeps its proof
// for target namespaces that are created after the plan was swept, and that one which runs writes nothing for them.
func TestAPermissionIsRecordedBeforeItsNamespacesExist(t *testing.T) {
	w := withoutAPIs("a")
	require.Equal(t, olmcore.Result{}, reconciled(t, w.input(t)).Result, "it is Succeeded")
	installAgain(w)
	w.settle(t)
	require.Len(t, w.more, 1)
	require.Empty(t, w.more[0].(*rbacv1.ClusterRole).Rules)
	w.sweep()
	require.Equal(t, olmcore.Result{}, reconciled(t, w.input(t)).Result)
	hold(w.csv, succeeded, "InstallSucceeded", "", 0)
	w.target("a")
	w.settle(t)
	w.requireGranted(t, "a")
}
