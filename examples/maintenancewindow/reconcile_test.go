// SPDX-License-Identifier: Apache-2.0

package maintenancewindow_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/examples/maintenancewindow"
	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/olmcore"
)

// noon is a Friday.
var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

type spec = map[string]any

func windowOf(s spec) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": s}}
	u.SetGroupVersionKind(maintenancewindow.Kind)
	u.SetName("weekend")
	u.SetUID("w")
	u.SetResourceVersion("1")
	return u
}

// steps returns those of a ClusterRole and of its binding to an operator's account, and the objects themselves.
func steps(name string, rules ...rbacv1.PolicyRule) (all []*v1alpha1.Step, live []olmcore.Object) {
	live = []olmcore.Object{
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules},
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: name},
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "ops", Name: "robot"}}},
	}
	for _, o := range live {
		all = append(all, stepOf(o))
	}
	return all, live
}

// inputOf is a plan that waits, with the Subscription that follows it.
func inputOf(window spec, change ...func(*maintenancewindow.Input)) maintenancewindow.Input {
	follows := &v1alpha1.Subscription{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "a", Labels: map[string]string{"tier": "gold"}}}
	follows.Status.InstallPlanRef = &corev1.ObjectReference{Namespace: "ops", Name: "install-a", UID: "p"}
	in := maintenancewindow.Input{Now: noon, Window: windowOf(window), Objects: []olmcore.Object{&v1alpha1.InstallPlan{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "install-a", UID: "p", ResourceVersion: "7"},
		Spec:       v1alpha1.InstallPlanSpec{Approval: v1alpha1.ApprovalManual, ClusterServiceVersionNames: []string{"a.v2"}},
		Status:     v1alpha1.InstallPlanStatus{Phase: v1alpha1.InstallPlanPhaseRequiresApproval},
	}, follows}}
	for _, c := range change {
		c(&in)
	}
	return in
}

func planOf(in *maintenancewindow.Input) *v1alpha1.InstallPlan {
	return in.Objects[0].(*v1alpha1.InstallPlan)
}

func followerOf(in *maintenancewindow.Input) *v1alpha1.Subscription {
	return in.Objects[1].(*v1alpha1.Subscription)
}

var pods = rbacv1.PolicyRule{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods"}}

// gaining is an upgrade whose operator may read Secrets from then on.
func gaining(in *maintenancewindow.Input) {
	_, live := steps("a.v1", pods)
	in.Objects = append(append(in.Objects, live...), installed("a.v1", "a"))
	planOf(in).Status.Plan, _ = steps("a.v2", pods, secrets)
	planOf(in).Status.Plan = append(planOf(in).Status.Plan, stepOf(installed("a.v2", "a")))
}

// installed is a version of a package, "" for one that tells of none.
func installed(name, pkg string) *v1alpha1.ClusterServiceVersion {
	c := &v1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: name}}
	if pkg != "" {
		c.Annotations = map[string]string{olmcore.AnnotationProperties: `{"properties":[{"type":"olm.package","value":{"packageName":"` + pkg + `","version":"1.0.0"}}]}`}
	}
	return c
}

// stepOf is the step of a plan that brings an object.
func stepOf(o olmcore.Object) *v1alpha1.Step {
	text, _ := json.Marshal(o)
	gvk := olmcore.GVKOf(o)
	return &v1alpha1.Step{Resource: v1alpha1.StepResource{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind, Name: o.GetName(), Manifest: string(text)}}
}

// installedOf is the installed version of a plan that gains permissions.
func installedOf(in *maintenancewindow.Input) *v1alpha1.ClusterServiceVersion {
	return in.Objects[len(in.Objects)-1].(*v1alpha1.ClusterServiceVersion)
}

// brings makes a plan that gains permissions bring a version, in place of a.v2 of package a.
func brings(manifest string) func(*maintenancewindow.Input) {
	return func(in *maintenancewindow.Input) {
		gaining(in)
		planOf(in).Status.Plan[2].Resource.Manifest = manifest
	}
}

// lines says what a result asks for and says.
func lines(r olmcore.Result) (all []string) {
	for _, a := range r.Actions {
		verb, target, cause := a.Describe()
		text := fmt.Sprintf("%s %s (%s)", verb, target, cause.Reason)
		if s, is := a.(olmcore.UpdateStatus); is {
			status, _ := json.Marshal(s.After.(*unstructured.Unstructured).Object["status"])
			text += " " + string(status)
		}
		all = append(all, text)
	}
	for _, t := range r.Transitions {
		all = append(all, t.Target.String()+": "+t.String())
	}
	for _, d := range r.Diagnostics {
		all = append(all, fmt.Sprintf("%s %s: %s", d.Severity, d.Reason, d.Message))
	}
	if r.RequeueAfter > 0 {
		all = append(all, "again after "+r.RequeueAfter.String())
	}
	return all
}

const (
	approved = "update InstallPlan ops/install-a (WindowOpen)"
	edge     = "InstallPlan ops/install-a: Approval Waiting -> Approved"
)

func TestReconcile(t *testing.T) {
	open, closed := spec{"schedule": "0 * * * *", "duration": "30m"}, spec{"schedule": "0 22 * * SAT", "timeZone": "Europe/Berlin", "duration": "4h"}
	with := func(base spec, key string, value any) spec {
		s := spec{key: value}
		for k, v := range base {
			if k != key {
				s[k] = v
			}
		}
		return s
	}
	status := func(text string) string {
		return "updateStatus MaintenanceWindow weekend (StatusChanged) {" + text + "}"
	}
	invalid := func(message string) []string {
		text, _ := json.Marshal(message)
		return []string{status(`"problem":` + string(text))}
	}
	held := func(gains string) []string {
		message := "approve it yourself, or set spec.allowPermissions: " + gains
		return []string{status(`"waiting":[{"message":"` + message + `","name":"install-a","namespace":"ops","reason":"GainsPermissions"}]`),
			"Warning GainsPermissions: window weekend: " + message}
	}
	taken, gold := []string{approved, edge}, spec{"tier": "gold"}
	type inputs = []func(*maintenancewindow.Input)
	edit := func(change func(*v1alpha1.InstallPlan)) func(*maintenancewindow.Input) {
		return func(in *maintenancewindow.Input) { change(planOf(in)) }
	}
	for name, tt := range map[string]struct {
		window spec
		change inputs
		want   []string
	}{
		"nothing waits": {open, inputs{func(in *maintenancewindow.Input) { in.Objects = nil }}, nil},
		"open":          {open, nil, taken},
		"closed": {closed, nil, []string{
			status(`"opensAt":"2026-01-03T21:00:00Z","waiting":[{"message":"approved at 2026-01-03T21:00:00Z","name":"install-a","namespace":"ops","reason":"OutsideWindow"}]`),
			"Info OutsideWindow: window weekend: approved at 2026-01-03T21:00:00Z", "again after 33h0m0s"}},
		"gains permissions":     {open, inputs{gaining}, held("ServiceAccount ops/robot in the cluster: get secrets")},
		"gains what is allowed": {with(open, "allowPermissions", true), inputs{gaining}, taken},
		"keeps permissions":     {open, inputs{gaining, edit(func(p *v1alpha1.InstallPlan) { p.Status.Plan, _ = steps("a.v2", pods) })}, taken},
		"brings roles that are not in the plan": {open, inputs{gaining, edit(func(p *v1alpha1.InstallPlan) {
			p.Status.Plan = p.Status.Plan[:1]
			p.Status.Plan[0].Resource.Manifest = `{"kind":"ConfigMap","name":"x","namespace":"olm","catalogSourceName":"c","catalogSourceNamespace":"olm"}`
		})}, held("ClusterRole a.v2, which is in a bundle and not in the plan")},
		"bundles that are not unpacked": {open, inputs{gaining, edit(func(p *v1alpha1.InstallPlan) {
			p.Status.Plan, p.Status.BundleLookups = nil, []v1alpha1.BundleLookup{{}}
		})}, held("bundles that are not unpacked yet")},
		"of another namespace": {with(open, "namespaces", []any{"db"}), nil, nil},
		"of its namespace":     {with(open, "namespaces", []any{"db", "ops"}), nil, taken},
		"selected":             {with(open, "subscriptions", gold), nil, taken},
		"one of its Subscriptions is not selected": {with(open, "subscriptions", gold), inputs{func(in *maintenancewindow.Input) {
			other := followerOf(in).DeepCopy()
			other.Name, other.Labels = "b", nil
			in.Objects = append(in.Objects, other)
		}}, nil},
		"no Subscription follows it": {open, inputs{func(in *maintenancewindow.Input) { followerOf(in).Status.InstallPlanRef.UID = "another" }}, nil},
		"is approved already":        {open, inputs{edit(func(p *v1alpha1.InstallPlan) { p.Spec.Approved = true })}, nil},
		"is being deleted":           {open, inputs{edit(func(p *v1alpha1.InstallPlan) { p.DeletionTimestamp = &metav1.Time{Time: noon} })}, nil},
		"a schedule of words":        {with(open, "schedule", "weekly"), nil, invalid("spec.schedule or spec.timeZone: expected exactly 5 fields, found 1: [weekly]")},
		"an interval":                {with(open, "schedule", "@every 1h"), nil, invalid("spec.schedule or spec.timeZone: parser does not accept descriptors: @every 1h")},
		"a zone in the schedule":     {with(open, "schedule", "TZ=UTC"), nil, invalid("spec.schedule or spec.timeZone: expected exactly 5 fields, found 1: [TZ=UTC]")},
		"a day that never comes":     {with(open, "schedule", "0 0 30 2 *"), nil, invalid(`spec.schedule: "0 0 30 2 *" never comes`)},
		"no zone of this world":      {with(open, "timeZone", "Mars/Olympus"), nil, invalid("spec.schedule or spec.timeZone: provided bad location Mars/Olympus: unknown time zone Mars/Olympus")},
		"no time at all":             {with(open, "duration", "0s"), nil, invalid("spec.duration: 0s is no time at all")},
		"a word for a list":          {with(open, "namespaces", "ops"), nil, invalid("it cannot be decoded: cannot restore slice from string")},
	} {
		t.Run(name, func(t *testing.T) {
			in := inputOf(tt.window, tt.change...)
			got, err := maintenancewindow.Reconcile(in)
			require.NoError(t, err)
			if diff := cmp.Diff(tt.want, lines(got)); diff != "" {
				t.Error(diff)
			}
			// A schedule is no matter of distances, so ShiftInvariant is not among the laws.
			require.NoError(t, errors.Join(invariant.Deterministic(maintenancewindow.Reconcile, in), invariant.Pure(maintenancewindow.Reconcile, in),
				invariant.DeadlineSound(maintenancewindow.Reconcile, in), invariant.Separate(got), invariant.Recordable(got)))
			if s, is := olmcore.StatusOf[*unstructured.Unstructured](got.Actions); is {
				again, err := maintenancewindow.Reconcile(maintenancewindow.Input{Now: noon.Add(time.Second), Window: s, Objects: in.Objects})
				require.NoError(t, err)
				_, is = olmcore.StatusOf[*unstructured.Unstructured](again.Actions)
				require.False(t, is, "what is said once stays said: %v", lines(again))
			}
		})
	}
}

// TestNoSpellingOfAStepHidesPermissions checks that a step gains permissions however it says so, as long as the step
// would be executed.
func TestNoSpellingOfAStepHidesPermissions(t *testing.T) {
	for name, change := range map[string]func(r *v1alpha1.StepResource){
		"no group":      func(r *v1alpha1.StepResource) { r.Group = "" },
		"another group": func(r *v1alpha1.StepResource) { r.Group = "example.com" },
		"a key in two cases": func(r *v1alpha1.StepResource) {
			if r.Kind == "ClusterRole" {
				r.Manifest = `{"metadata":{"name":"a.v2"},"rules":[{"verbs":["*"],"apiGroups":["*"],"resources":["*"]}],"Rules":[]}`
			}
		},
		"YAML": func(r *v1alpha1.StepResource) {
			if r.Kind == "ClusterRole" {
				r.Manifest = "metadata: {name: a.v2}\nrules: [{verbs: ['*'], apiGroups: ['*'], resources: ['*']}]"
			}
		},
	} {
		in := inputOf(spec{"schedule": "* * * * *", "duration": "1h"}, gaining)
		for _, step := range planOf(&in).Status.Plan[:2] {
			change(&step.Resource)
		}
		r, err := maintenancewindow.Reconcile(in)
		require.NoError(t, err, name)
		require.NotContains(t, lines(r), approved, name)
	}
}

// TestWhatIsAnUpgrade: what is installed is the versions of the namespace, whatever a Subscription's status says of it.
func TestWhatIsAnUpgrade(t *testing.T) {
	reference := func(replaces, properties string) string {
		text, _ := json.Marshal(map[string]string{"kind": "ConfigMap", "name": "x", "namespace": "olm", "catalogSourceName": "c", "replaces": replaces, "properties": properties})
		return string(text)
	}
	change := func(edit func(*v1alpha1.ClusterServiceVersion)) func(*maintenancewindow.Input) {
		return func(in *maintenancewindow.Input) {
			gaining(in)
			edit(installedOf(in))
		}
	}
	manifest := func(replaces string, skips ...string) string {
		c := installed("a.v2", "a")
		c.Spec.Replaces, c.Spec.Skips = replaces, skips
		return stepOf(c).Resource.Manifest
	}
	properties := installed("", "a").Annotations[olmcore.AnnotationProperties]
	other := func(in *maintenancewindow.Input) {
		installedOf(in).Annotations = installed("", "b").Annotations
	}
	type changes = []func(*maintenancewindow.Input)
	for name, tt := range map[string]struct {
		changes changes
		is      bool
	}{
		"of one package":       {changes{gaining}, true},
		"nothing is installed": {changes{gaining, func(in *maintenancewindow.Input) { in.Objects = in.Objects[:len(in.Objects)-1] }}, false},
		"its Subscription says so alone": {changes{gaining, func(in *maintenancewindow.Input) {
			in.Objects = in.Objects[:len(in.Objects)-1]
			followerOf(in).Status.InstalledCSV = "a.v1"
		}}, false},
		"in another namespace":              {changes{change(func(c *v1alpha1.ClusterServiceVersion) { c.Namespace = "db" })}, false},
		"a copy":                            {changes{change(func(c *v1alpha1.ClusterServiceVersion) { c.Labels = map[string]string{olmcore.LabelCopiedFrom: "db"} })}, false},
		"its status says that it is a copy": {changes{change(func(c *v1alpha1.ClusterServiceVersion) { c.Status.Reason = v1alpha1.CSVReasonCopied })}, true},
		"of another package":                {changes{gaining, other}, false},
		"the installed one tells of none":   {changes{change(func(c *v1alpha1.ClusterServiceVersion) { c.Annotations = nil })}, true},
		"the new one tells of none":         {changes{brings(stepOf(installed("a.v2", "")).Resource.Manifest), other}, true},
		"one of two new ones tells of none": {changes{gaining, other, func(in *maintenancewindow.Input) {
			planOf(in).Status.Plan = append(planOf(in).Status.Plan, stepOf(installed("c.v1", "")))
		}}, true},
		"the new one is not in the plan":  {changes{gaining, other, func(in *maintenancewindow.Input) { planOf(in).Status.Plan = planOf(in).Status.Plan[:2] }}, true},
		"a bundle is not unpacked":        {changes{gaining, other, func(in *maintenancewindow.Input) { planOf(in).Status.BundleLookups = []v1alpha1.BundleLookup{{}} }}, true},
		"it replaces what says another":   {changes{brings(manifest("a.v1")), other}, true},
		"it skips what says another":      {changes{brings(manifest("a.v0", "a.v1")), other}, true},
		"it replaces none of them":        {changes{brings(manifest("a.v0")), other}, false},
		"the same version is there":       {changes{gaining, other, func(in *maintenancewindow.Input) { installedOf(in).Name = "a.v2" }}, true},
		"a reference, of one package":     {changes{brings(reference("", properties))}, true},
		"a reference, of another package": {changes{brings(reference("", properties)), other}, false},
		"a reference that replaces it":    {changes{brings(reference("a.v1", properties)), other}, true},
		"a manifest that cannot be read":  {changes{brings(`{"metadata":{"annotations":{}},"spec":7}`), other}, true},
		"two packages, of which one is other": {changes{change(func(c *v1alpha1.ClusterServiceVersion) {
			c.Annotations = map[string]string{olmcore.AnnotationProperties: `{"properties":[{"type":"olm.package","value":{"packageName":"b"}},{"type":"olm.package","value":{"packageName":"c"}}]}`}
		})}, true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := maintenancewindow.Reconcile(inputOf(spec{"schedule": "0 * * * *", "duration": "30m"}, tt.changes...))
			require.NoError(t, err)
			require.Equal(t, tt.is, len(got.Transitions) == 0, "%v", lines(got))
		})
	}
}

func TestAnApprovalIsOfWhatWasSeen(t *testing.T) {
	got, err := maintenancewindow.Reconcile(inputOf(spec{"schedule": "* * * * *", "duration": "1m"}))
	require.NoError(t, err)
	approval := got.Actions[0].(olmcore.Update)
	require.Equal(t, "7", approval.Target.ResourceVersion)
	require.Equal(t, types.UID("p"), approval.Target.UID)
	after := approval.After.(*v1alpha1.InstallPlan)
	require.True(t, after.Spec.Approved)
	require.Equal(t, "weekend", after.Annotations[maintenancewindow.AnnotationApprovedBy])
}

// TestThePlanOfATenantHidesNoCharactersInTheStatus checks that the names in the rules of a plan are escaped.
func TestThePlanOfATenantHidesNoCharactersInTheStatus(t *testing.T) {
	hidden := secrets
	hidden.Resources = []string{"secrets\u202e"}
	in := inputOf(spec{"schedule": "* * * * *", "duration": "1m"}, func(in *maintenancewindow.Input) {
		gaining(in)
		planOf(in).Status.Plan, _ = steps("a.v2", pods, hidden)
		planOf(in).Status.Plan = append(planOf(in).Status.Plan, stepOf(installed("a.v2", "a")))
	})
	got, err := maintenancewindow.Reconcile(in)
	require.NoError(t, err)
	status, _ := olmcore.StatusOf[*unstructured.Unstructured](got.Actions)
	waiting, _, err := unstructured.NestedSlice(status.Object, "status", "waiting")
	require.NoError(t, err)
	require.Contains(t, waiting[0].(map[string]any)["message"], `secrets\u202e`)
}

func TestTheStatusIsBounded(t *testing.T) {
	in := inputOf(spec{"schedule": "0 1 * * *", "duration": "1h"})
	for i := range 300 {
		p := planOf(&in).DeepCopy()
		p.Name = fmt.Sprintf("install-%03d", i)
		in.Objects = append(in.Objects, p)
	}
	got, err := maintenancewindow.Reconcile(in)
	require.NoError(t, err)
	status, _ := olmcore.StatusOf[*unstructured.Unstructured](got.Actions)
	waiting, _, err := unstructured.NestedSlice(status.Object, "status", "waiting")
	require.NoError(t, err)
	require.Len(t, waiting, 100)
}

func TestReconcileRefusesWhatItCannotUse(t *testing.T) {
	for _, in := range []maintenancewindow.Input{{}, {Now: noon}, {Window: windowOf(nil)}} {
		_, err := maintenancewindow.Reconcile(in)
		require.ErrorIs(t, err, olmcore.ErrInvalidInput)
	}
}

func FuzzReconcile(f *testing.F) {
	f.Add(`{"spec":{"schedule":"0 22 * * SAT","timeZone":"Europe/Berlin","duration":"4h"},"status":{"waiting":[{}]}}`, `{"rules":[{}]}`)
	f.Fuzz(func(t *testing.T, window, role string) {
		u := windowOf(nil)
		var fields map[string]any
		if json.Unmarshal([]byte(window), &fields) != nil {
			return
		}
		u.Object["spec"], u.Object["status"] = fields["spec"], fields["status"]
		in := inputOf(nil, gaining)
		in.Window, planOf(&in).Status.Plan[0].Resource.Manifest = u, role
		if _, err := maintenancewindow.Reconcile(in); err != nil {
			require.ErrorIs(t, err, olmcore.ErrInvalidInput)
		}
	})
}
