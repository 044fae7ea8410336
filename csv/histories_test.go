// SPDX-License-Identifier: Apache-2.0

package csv_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/csv"
	"github.com/olmcore/olm/csv/cleanup"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/internal/csvtest"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/controller"
)

// history is a namespace in which versions of one operator are created and deleted while writes fail, are forbidden,
// and controllers are down.
type history struct {
	c         *fake.Cluster
	d         *fake.Driver
	template  *v1alpha1.ClusterServiceVersion
	forbidden map[string]bool
	since     time.Time // of the oldest ban
	seen      map[types.UID]*v1alpha1.ClusterServiceVersion
	violation error
	// subscribed: a Subscription keeps the operands of a version that it installed.
	subscribed bool
}

func newHistory(t *rapid.T) *history {
	c, d := newWorld(csv.Config{})
	base := fromFiles("base.yaml", "v1.yaml")
	require.NoError(t, c.Create(base[:3]...))
	require.NoError(t, c.RunFor(time.Second)) // the CRD is established
	h := &history{
		c:         c,
		d:         d,
		template:  base[len(base)-1].(*v1alpha1.ClusterServiceVersion),
		forbidden: map[string]bool{},
		seen:      map[types.UID]*v1alpha1.ClusterServiceVersion{},
	}
	c.Authorize = h.authorize
	return h
}

// authorize observes every write of the controllers. It rejects forbidden writes, and records a deletion of an object
// that a live version needs.
func (h *history) authorize(_ *corev1.ObjectReference, verb olmcore.Verb, target olmcore.Ref) error {
	if h.forbidden[string(verb)+" "+target.Kind] {
		return apierrors.NewForbidden(schema.GroupResource{Group: target.GVK().Group, Resource: target.Kind}, target.Name, errors.New("not you"))
	}
	if verb != olmcore.VerbDelete {
		return nil
	}
	if target.Kind == "ClusterServiceVersion" {
		if original := fake.Find[*v1alpha1.ClusterServiceVersion](h.c, "ns", target.Name); target.Namespace != "ns" &&
			(original == nil || original.DeletionTimestamp == nil) {
			h.violation = fmt.Errorf("%s was deleted, of which nothing is being deleted", target)
		}
		return nil
	}
	switch target.Kind {
	case "ServiceAccount", "Role", "RoleBinding", "CustomResourceDefinition", "Namespace", "OperatorGroup", "Subscription":
		h.violation = fmt.Errorf("%s was deleted, which no clean-up may", target)
		return nil
	}
	o, err := h.c.Get(context.Background(), target.GVK(), target.Namespace, target.Name)
	if err != nil || olmcore.RefOf(o).Kind == "" || o.GetUID() != target.UID {
		return nil
	}
	owner, _ := olmcore.OwnerOf(o.GetLabels())
	for _, v := range csvs(h.c) {
		switch {
		case v.DeletionTimestamp != nil:
		case target.Kind == "Cool":
			h.violation = fmt.Errorf("%s was deleted although %s lives", target, v.Name)
		case target.Kind == "APIService": // no version describes one
		case owner.Kind == "ClusterServiceVersion" && owner.Name == v.Name && owner.Namespace == v.Namespace:
			h.violation = fmt.Errorf("%s was deleted although its owner %s lives", target, v.Name)
		}
	}
	return nil
}

// live returns the versions that are not deleted, oldest first.
func (h *history) live() []*v1alpha1.ClusterServiceVersion {
	list := slices.DeleteFunc(
		csvs(h.c),
		func(v *v1alpha1.ClusterServiceVersion) bool { return v.DeletionTimestamp != nil || v.Namespace != "ns" },
	)
	slices.SortFunc(list, func(a, b *v1alpha1.ClusterServiceVersion) int { return a.Spec.Version.Compare(b.Spec.Version.Version) })
	return list
}

// bring creates the objects that an InstallPlan would create for a version.
func (h *history) bring(t *rapid.T, i int, object bool) {
	v := h.template.DeepCopy()
	v.Name, v.Spec.Version.Major = fmt.Sprintf("cool.v%d", i), uint64(i)
	v.Spec.Cleanup.Enabled = rapid.Bool().Draw(t, "cleanup")
	if i > 0 {
		v.Spec.Replaces = fmt.Sprintf("cool.v%d", i-1)
	}
	objects := append(needs(v)[1:], leftovers(v)...)
	if rapid.IntRange(0, 3).Draw(t, "lean") == 0 { // an operator that is nothing but its Deployment
		v.Spec.InstallStrategy.StrategySpec.ClusterPermissions, objects = nil, nil
	}
	definition := olmcore.Key{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: "cools.example.com"}
	require.NoError(t, h.c.Edit(definition, func(o olmcore.Object) {
		annotations, _ := olmcore.MergeMaps(
			o.GetAnnotations(),
			map[string]string{fmt.Sprint("operatorframework.io/installed-alongside-", i): "ns/" + v.Name},
		)
		o.SetAnnotations(annotations)
	}))
	if object {
		objects = append(objects, v, copyOf(v))
	}
	for _, o := range objects {
		if err := h.c.Create(o); err != nil && !apierrors.IsAlreadyExists(err) {
			require.NoError(t, err)
		}
	}
}

// copyOf returns the copy of a version that another controller creates in a watched namespace.
func copyOf(v *v1alpha1.ClusterServiceVersion) *v1alpha1.ClusterServiceVersion {
	c := &v1alpha1.ClusterServiceVersion{
		ObjectMeta: metav1.ObjectMeta{Namespace: "watched", Name: v.Name, Labels: map[string]string{"olm.copiedFrom": v.Namespace}},
	}
	c.Spec = v.Spec
	return c
}

func isCopyOf(o olmcore.Object, v *v1alpha1.ClusterServiceVersion) bool {
	return olmcore.KeyOf(o).Kind == "ClusterServiceVersion" && o.GetName() == v.Name && o.GetLabels()["olm.copiedFrom"] == v.Namespace
}

// leftovers returns objects that only a cleanup deletes, one for each stage for which this library creates no objects.
func leftovers(v *v1alpha1.ClusterServiceVersion) []olmcore.Object {
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{
			Name:   v.Name + "-" + name,
			Labels: olmcore.Owner{Kind: "ClusterServiceVersion", Namespace: v.Namespace, Name: v.Name}.Labels(),
		}
	}
	typed := func(version schema.GroupVersion, kind string) metav1.TypeMeta {
		return metav1.TypeMeta{APIVersion: version.String(), Kind: kind}
	}
	number := "v" + strings.TrimPrefix(v.Name, "cool.v")
	service := &apiregistrationv1.APIService{TypeMeta: typed(apiregistrationv1.SchemeGroupVersion, "APIService"), ObjectMeta: meta("service")}
	service.Name = number + ".api.example.com"
	service.Spec = apiregistrationv1.APIServiceSpec{Group: "api.example.com", Version: number, GroupPriorityMinimum: 1, VersionPriority: 1}
	return []olmcore.Object{
		&admissionregistrationv1.ValidatingWebhookConfiguration{
			TypeMeta: typed(admissionregistrationv1.SchemeGroupVersion, "ValidatingWebhookConfiguration"), ObjectMeta: meta("webhook"),
		},
		&schedulingv1.PriorityClass{TypeMeta: typed(schedulingv1.SchemeGroupVersion, "PriorityClass"), ObjectMeta: meta("priority")},
		service,
	}
}

func (h *history) exists(i int) bool {
	return fake.Find[*v1alpha1.ClusterServiceVersion](h.c, "ns", fmt.Sprintf("cool.v%d", i)) != nil
}

func (h *history) step(t *rapid.T) {
	live := h.live()
	switch rapid.IntRange(0, 14).Draw(t, "step") {
	case 0, 1: // install, or upgrade
		next := rapid.IntRange(0, 2).Draw(t, "version")
		if n := len(live); n > 0 {
			next = int(live[n-1].Spec.Version.Major) + 1
		}
		if !h.exists(next) {
			h.bring(t, next, true)
		}
	case 2: // the RBAC of the next installation comes while the old one is leaving
		require.NoError(t, h.c.RunFor(2*time.Second))
		for _, v := range csvs(h.c) {
			if v.DeletionTimestamp != nil && v.Namespace == "ns" {
				h.bring(t, int(v.Spec.Version.Major), false)
			}
		}
	case 3, 4: // delete the oldest or the newest
		if n := len(live); n > 0 {
			require.NoError(t, h.c.Delete(refOf(live[rapid.SampledFrom([]int{0, n - 1}).Draw(t, "which")])))
		}
	case 5, 10: // an operand, with or without a finalizer of its operator
		var finalizers []string
		if rapid.Bool().Draw(t, "finalizer") {
			finalizers = []string{"example.com/cool"}
		}
		require.NoError(t, ignoreExisting(h.c.Create(cool(fmt.Sprintf("c%d", rapid.IntRange(0, 2).Draw(t, "operand")), finalizers...))))
	case 11: // the operator works: it finishes operands, while it runs
		if d := fake.Find[*appsv1.Deployment](h.c, "ns", "cool"); d != nil && d.DeletionTimestamp == nil {
			h.finishOperands(t)
		}
	case 12: // the operator breaks, or recovers
		if rapid.Bool().Draw(t, "breaks") {
			h.c.Deployment("ns", "cool").Break("crash-looping")
		} else {
			h.c.Deployment("ns", "cool").Heal()
		}
	case 14: // something is held by a finalizer that stays
		h.wedge(t)
	case 13: // a Subscription says what it has installed, or goes
		h.subscribe(t)
	case 6:
		h.c.Faults().Inject(fake.Fault{
			Mode: rapid.SampledFrom([]fake.FaultMode{fake.FailWithoutEffect, fake.FailAfterEffect, fake.Conflict, fake.Crash}).Draw(t, "fault"),
			Nth:  rapid.IntRange(1, 5).Draw(t, "nth"),
		})
	case 7:
		ban := rapid.SampledFrom([]string{
			"delete ClusterRole", "delete ClusterRoleBinding", "delete Deployment", "update ClusterServiceVersion", "delete Cool",
			"delete APIService", "delete ValidatingWebhookConfiguration", "create Deployment", "update Deployment",
		}).Draw(t, "ban")
		if len(h.forbidden) == 0 {
			h.since = h.c.Now()
		}
		h.forbidden[ban] = true
	case 8:
		clear(h.forbidden)
	case 9: // an outage
		require.NoError(t, h.c.RunFor(time.Duration(rapid.IntRange(1, 100).Draw(t, "seconds"))*time.Second))
	}
	if len(h.forbidden) > 0 && h.c.Now().Sub(h.since) > 4*time.Minute {
		clear(h.forbidden)
	}
}

func (h *history) finishOperands(t *rapid.T) {
	for _, o := range h.c.Objects() {
		if key := olmcore.KeyOf(o); key.Kind == "Cool" && o.GetDeletionTimestamp() != nil {
			require.NoError(t, h.c.Edit(key, func(o olmcore.Object) { o.SetFinalizers(nil) }))
		}
	}
}

const wedged = "example.com/wedged"

func (h *history) wedge(t *rapid.T) {
	kinds := []string{"Deployment", "ClusterRole", "APIService", "PriorityClass"}
	kind := rapid.SampledFrom(kinds).Draw(t, "wedged")
	for _, o := range h.c.Objects() {
		owner, _ := olmcore.OwnerOf(o.GetLabels())
		if key := olmcore.KeyOf(o); key.Kind == kind && owner.Kind == "ClusterServiceVersion" && o.GetDeletionTimestamp() == nil {
			require.NoError(t, h.c.Edit(key, func(o olmcore.Object) { o.SetFinalizers([]string{wedged}) }))
			return
		}
	}
}

func (h *history) unwedge(t *rapid.T) {
	for _, o := range h.c.Objects() {
		if slices.Contains(o.GetFinalizers(), wedged) {
			require.NoError(t, h.c.Edit(olmcore.KeyOf(o), func(o olmcore.Object) { o.SetFinalizers(nil) }))
		}
	}
}

func (h *history) subscribe(t *rapid.T) {
	if h.subscribed {
		h.subscribed = false
		require.NoError(
			t,
			h.c.Delete(olmcore.Ref{APIVersion: "operators.coreos.com/v1alpha1", Kind: "Subscription", Namespace: "ns", Name: "cool"}),
		)
		return
	}
	h.subscribed = true
	s := &v1alpha1.Subscription{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "cool"},
		Spec:       &v1alpha1.SubscriptionSpec{Package: "cool"},
	}
	require.NoError(t, h.c.Create(s))
	s = fake.Find[*v1alpha1.Subscription](h.c, "ns", "cool").DeepCopy()
	s.Status.InstalledCSV = fmt.Sprintf("cool.v%d", rapid.IntRange(0, 3).Draw(t, "installed"))
	s.Status.LastUpdated = metav1.NewTime(h.c.Now())
	require.NoError(t, h.c.UpdateStatus(s))
}

// waited reports whether an object has been Terminating for a time.
func (h *history) waited(o olmcore.Object, d time.Duration) bool {
	return o.GetDeletionTimestamp() != nil && h.c.Now().Sub(o.GetDeletionTimestamp().Time) >= d
}

// check checks the properties that must hold at any time.
func (h *history) check(t *rapid.T) {
	require.NoError(t, h.violation, "%s", controller.Format(h.d.Events))
	h.checkHolds(t)
	now := map[types.UID]bool{}
	for _, v := range csvs(h.c) {
		h.seen[v.UID], now[v.UID] = v, true
	}
	for uid, v := range h.seen {
		if now[uid] {
			continue
		}
		delete(h.seen, uid)
		if !slices.Contains(v.Finalizers, cleanup.Finalizer) {
			continue // it was deleted before a controller observed it: a sweep reports what it left
		}
		for _, o := range h.c.Objects() {
			owner, _ := olmcore.OwnerOf(o.GetLabels())
			created := o.GetCreationTimestamp()
			late := v.DeletionTimestamp != nil && created.After(v.DeletionTimestamp.Time) ||
				h.waited(o, time.Minute) && slices.Contains(o.GetFinalizers(), wedged)
			mine := owner.Kind == "ClusterServiceVersion" && owner.Name == v.Name && owner.Namespace == v.Namespace && o.GetNamespace() == ""
			if (mine || isCopyOf(o, v)) && !late {
				t.Fatalf("%s outlives %s\n%s", olmcore.KeyOf(o), v.Name, controller.Format(h.d.Events))
			}
		}
	}
}

func ignoreExisting(err error) error {
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// TestRandomHistoriesLeaveNothingBehind checks that no dependent object exists after the finalizer is removed, and that
// no object that a live version needs is deleted. Every deletion ends, and all desired operators run in the end.
func TestRandomHistoriesLeaveNothingBehind(t *testing.T) {
	ctx := context.Background()
	rapid.Check(t, func(t *rapid.T) {
		h := newHistory(t)
		neighbour := rapid.Bool().Draw(t, "neighbour")
		if neighbour { // another tenant owns the same CRD
			other := h.template.DeepCopy()
			other.Namespace, other.Name = "other", "cool.v1"
			require.NoError(t, h.c.Create(other))
		}
		for range rapid.IntRange(1, 25).Draw(t, "steps") {
			h.step(t)
			h.check(t)
			for range rapid.IntRange(0, 4).Draw(t, "rounds") {
				_, err := h.d.Round(ctx)
				require.NoError(t, err)
				h.check(t)
			}
		}
		clear(h.forbidden)
		h.c.Faults().Clear()
		h.c.Deployment("ns", "cool").Heal()
		require.NoError(t, h.d.RunUntilIdle(ctx, 2*time.Hour))
		require.NoError(t, h.c.RunFor(time.Second))
		require.NoError(
			t,
			h.c.Create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "newcomer"}}),
		) // permissions changed
		require.NoError(t, h.d.RunUntilIdle(ctx, 2*time.Hour))
		h.check(t)
		for _, help := range []func(*rapid.T){h.finishOperands, h.skipOperands, h.unwedge} { // what an operator that is gone leaves to its user
			help(t)
			require.NoError(t, h.d.RunUntilIdle(ctx, 2*time.Hour))
			h.check(t)
		}
		ready := len(h.live()) == 0
		for _, v := range csvs(h.c) {
			require.Nil(t, v.DeletionTimestamp, "%s is still held: %s\n%s", v.Name, v.Status.Message, controller.Format(h.d.Events))
			ready = ready || v.Namespace == "ns" && v.Status.Phase == succeeded
		}
		require.True(t, ready, "%v\n%s", phases(h.live()), controller.Format(h.d.Events))
	})
}

// skipOperands sets the annotation that a user sets if the operator cannot remove the finalizers of its custom
// resources.
func (h *history) skipOperands(t *rapid.T) {
	for _, v := range csvs(h.c) {
		if v.DeletionTimestamp != nil {
			require.Contains(t, v.Status.Message, "operator not running", "%s\n%s", v.Name, controller.Format(h.d.Events))
			require.NoError(t, fake.Edit(h.c, v.Namespace, v.Name, func(v *v1alpha1.ClusterServiceVersion) {
				v.Annotations[cleanup.AnnotationCleanup] = cleanup.OverrideSkipOperands
			}))
		}
	}
}

func phases(list []*v1alpha1.ClusterServiceVersion) (said []string) {
	for _, v := range list {
		said = append(said, fmt.Sprintf("%s %s %s", v.Name, v.Status.Phase, v.Status.Message))
	}
	return said
}

// mayHold computes again, from the objects of the cluster alone, which objects may keep a CSV.
func (h *history) mayHold(v *v1alpha1.ClusterServiceVersion) map[olmcore.Key]bool {
	holds, rbac := map[olmcore.Key]bool{}, false
	operands := v.Spec.Cleanup.Enabled && v.Annotations[cleanup.AnnotationCleanup] == "" && !h.superseded(v) && !h.keepsOperands(v)
	var stopping []olmcore.Key
	for _, o := range h.c.Objects() {
		key, owner := olmcore.KeyOf(o), olmcore.Owner{Kind: "ClusterServiceVersion", Namespace: v.Namespace, Name: v.Name}
		stuck := h.waited(o, 5*time.Minute) || key.Kind == "PriorityClass" && h.waited(o, time.Minute)
		created := o.GetCreationTimestamp()
		mine := owner.Owns(o.GetLabels()) && !created.After(v.DeletionTimestamp.Time)
		switch d := o.(type) {
		case *appsv1.Deployment:
			if d.Namespace == v.Namespace && owner.Owns(d.Labels) && olmcore.OwnedBy(d, v.UID) && !h.waited(o, 30*time.Second) {
				stopping = append(stopping, key)
			}
			continue
		}
		switch {
		case isCopyOf(o, v):
			holds[key] = o.GetDeletionTimestamp() == nil
		case key.Kind == "Cool":
			holds[key] = operands && key.Namespace == "ns"
		case key.Namespace == "" && mine && !stuck && key.Kind != "CustomResourceDefinition" && key.Kind != "Namespace":
			holds[key] = true
			rbac = rbac || key.Group == "rbac.authorization.k8s.io"
		}
	}
	for _, key := range stopping {
		holds[key] = rbac // a Deployment is waited for when permissions are to go
	}
	for key, yes := range holds {
		if !yes {
			delete(holds, key)
		}
	}
	return holds
}

// superseded reports whether a newer version exists, or was installed before this one was deleted.
func (h *history) superseded(v *v1alpha1.ClusterServiceVersion) bool {
	replaced := func(reason v1alpha1.ConditionReason) bool { return reason == "Replaced" || reason == "BeingReplaced" }
	why := v.Status.Reason
	for _, c := range slices.Backward(v.Status.Conditions) {
		if why != "WaitingOnCleanup" {
			break
		}
		why = c.Reason
	}
	return v.Status.Phase == replacing || replaced(why) || slices.ContainsFunc(h.live(), func(s *v1alpha1.ClusterServiceVersion) bool {
		return s.Spec.Replaces == v.Name && s.Namespace == v.Namespace
	})
}

// keepsOperands reports whether another operator or a Subscription needs the custom resources.
func (h *history) keepsOperands(v *v1alpha1.ClusterServiceVersion) bool {
	s := fake.Find[*v1alpha1.Subscription](h.c, "ns", "cool")
	return s != nil && s.Status.InstalledCSV == v.Name || v.Annotations["olm.targetNamespaces"] != "ns" ||
		slices.ContainsFunc(csvs(h.c), func(o *v1alpha1.ClusterServiceVersion) bool { return o.UID != v.UID && o.DeletionTimestamp == nil })
}

// checkHolds checks that each deletion waits only for objects that the policy names, and ends when there are none.
func (h *history) checkHolds(t *rapid.T) {
	for _, v := range csvs(h.c) {
		if v.DeletionTimestamp == nil || !slices.Contains(v.Finalizers, cleanup.Finalizer) {
			continue
		}
		in, err := csv.Gather(context.Background(), h.c, types.NamespacedName{Namespace: v.Namespace, Name: v.Name}, csv.Config{})
		require.NoError(t, err)
		in.Now = h.c.Now()
		allowed := h.mayHold(v)
		assessed := assess(t, in)
		if len(allowed) == 0 {
			require.Equal(t, cleanup.StageRelease, assessed.Stage, "%s waits for nothing\n%s", v.Name, controller.Format(h.d.Events))
			continue
		}
		require.NotEqual(t, cleanup.StageRelease, assessed.Stage, "%s would leave %v", v.Name, allowed)
		out := reconciled(t, in)
		require.Positive(t, out.RequeueAfter, "it looks again")
		require.LessOrEqual(t, assessed.Pending, len(allowed))
		require.Positive(t, assessed.Pending)
		for _, a := range out.Actions {
			if verb, target, _ := a.Describe(); verb == olmcore.VerbDelete {
				require.True(t, allowed[target.Key()], "%s deletes %s", v.Name, target)
			}
		}
		if after, ok := olmcore.StatusOf[*v1alpha1.ClusterServiceVersion](out.Actions); ok {
			h.checkReport(t, after, allowed)
		}
	}
}

func (h *history) checkReport(t *rapid.T, v *v1alpha1.ClusterServiceVersion, allowed map[olmcore.Key]bool) {
	for _, list := range v.Status.Cleanup.PendingDeletion {
		for _, instance := range list.Instances {
			key := olmcore.Key{Group: list.Group, Kind: list.Kind, Namespace: instance.Namespace, Name: instance.Name}
			require.True(t, allowed[key], "%s says that it waits for %s", v.Name, key)
		}
	}
}

// TestCleanupEndsIfDeletionsAreRejected checks that a cleanup ends although the API server rejects the deletion of some
// kinds. It ends soon after the time in the policy, and reports the objects that it left behind.
func TestCleanupEndsIfDeletionsAreRejected(t *testing.T) {
	kinds := []string{
		"Cool",
		"ValidatingWebhookConfiguration",
		"APIService",
		"Deployment",
		"ClusterRoleBinding",
		"ClusterRole",
		"PriorityClass",
	}
	rapid.Check(t, func(t *rapid.T) {
		ctx := context.Background()
		h := newHistory(t)
		h.bring(t, 1, true)
		require.NoError(t, h.d.RunUntilIdle(ctx, time.Hour))
		require.NoError(t, h.c.Create(cool("c")))
		refused := map[string]bool{}
		for _, kind := range kinds {
			if rapid.Bool().Draw(t, kind) {
				refused[kind], h.forbidden["delete "+kind] = true, true
			}
		}
		v := h.live()[0]
		require.NoError(t, h.c.Delete(refOf(v)))
		require.NoError(t, h.d.RunUntilIdle(ctx, time.Duration(1+len(refused))*(10*time.Minute+2*time.Minute)))
		require.Nil(t, fake.Find[*v1alpha1.ClusterServiceVersion](h.c, "ns", v.Name), "%s", controller.Format(h.d.Events))
		said := map[string]bool{}
		for _, e := range h.d.Events {
			if e.Diagnostic != nil && e.Diagnostic.Reason == cleanup.ReasonCleanupSkipped {
				said[e.Diagnostic.Target.Kind] = true
			}
		}
		for _, o := range h.c.Objects() {
			kind := olmcore.KeyOf(o).Kind
			owner, _ := olmcore.OwnerOf(o.GetLabels())
			if left := owner.Name == v.Name && o.GetNamespace() == "" || kind == "Cool" && v.Spec.Cleanup.Enabled; left {
				require.True(t, refused[kind], "%s stays", olmcore.KeyOf(o))
				require.True(t, said[kind], "%s is left behind and not reported", olmcore.KeyOf(o))
			}
		}
	})
}

// frozenWorld returns a CSV that failed ten seconds ago because the account "weak" may not install it, and all objects
// that the permissions of the account depend on. Times of objects do not matter.
func frozenWorld() map[string]olmcore.Object {
	meta := func(namespace, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{
			Namespace:         namespace,
			Name:              name,
			UID:               types.UID("uid-" + name),
			ResourceVersion:   "1",
			CreationTimestamp: *ago(time.Hour),
		}
	}
	weak := []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "ns", Name: "weak"}}
	c := operator("cool.v1", 1)
	hold(c, failed, "InstallComponentFailedNoRetry", "install strategy failed: no", 10*time.Second)
	g := group()
	g.Spec.ServiceAccountName = "weak"
	g.Status.ServiceAccountRef = &corev1.ObjectReference{Kind: "ServiceAccount", Namespace: "ns", Name: "weak"}
	return map[string]olmcore.Object{
		"csv": c, "group": g,
		"account": &corev1.ServiceAccount{ObjectMeta: meta("ns", "weak")},
		"role":    &rbacv1.Role{ObjectMeta: meta("ns", "installer")},
		"binding": &rbacv1.RoleBinding{
			ObjectMeta: meta("ns", "installer"),
			Subjects:   weak,
			RoleRef:    rbacv1.RoleRef{Kind: "Role", Name: "installer"},
		},
		"edit": &rbacv1.RoleBinding{
			ObjectMeta: meta("ns", "edit"),
			Subjects:   weak,
			RoleRef:    rbacv1.RoleRef{Kind: "ClusterRole", Name: "edit"},
		},
		"editor": &rbacv1.ClusterRole{ObjectMeta: meta("", "edit")},
		"global": &rbacv1.ClusterRoleBinding{
			ObjectMeta: meta("", "global"),
			Subjects:   weak,
			RoleRef:    rbacv1.RoleRef{Kind: "ClusterRole", Name: "all"},
		},
		"all": &rbacv1.ClusterRole{ObjectMeta: meta("", "all")},
		"bystander": &rbacv1.ClusterRoleBinding{
			ObjectMeta: meta(
				"",
				"bystander",
			), Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "ns", Name: "cool"}}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "view"},
		},
		"elsewhere": &rbacv1.Role{ObjectMeta: meta("other", "r")},
	}
}

// judge reconciles the CSV of a world with the memory of a caller.
func judge(t *testing.T, world map[string]olmcore.Object, judged *csv.Judged) csv.Outcome {
	t.Helper()
	objects := make([]olmcore.Object, 0, len(world))
	for _, o := range world {
		objects = append(objects, o)
	}
	in := gathered(t, objects...)
	in.Judged = judged
	return reconciled(t, in)
}

// TestCSVWithoutPermissionsIsRetriedIfGrantsChange checks that a CSV that lacks permissions is installed again if the
// content of its grants changes, whatever times the objects have.
// OLM's case: a group's ServiceAccount without permission: nothing is installed until RBAC changes.
func TestCSVWithoutPermissionsIsRetriedIfGrantsChange(t *testing.T) {
	newer := func(name string) func(w map[string]olmcore.Object) {
		return func(w map[string]olmcore.Object) { w[name].SetResourceVersion("2") }
	}
	without := func(name string) func(w map[string]olmcore.Object) {
		return func(w map[string]olmcore.Object) { delete(w, name) }
	}
	for name, c := range map[string]struct {
		change func(w map[string]olmcore.Object)
		want   bool
	}{
		"nothing":                        {func(map[string]olmcore.Object) {}, false},
		"a Role was written":             {newer("role"), true},
		"a Role was deleted":             {without("role"), true},
		"a Role was created again":       {func(w map[string]olmcore.Object) { w["role"].SetUID("another") }, true},
		"a RoleBinding was written":      {newer("binding"), true},
		"a RoleBinding was deleted":      {without("binding"), true},
		"a ClusterRole of the namespace": {newer("editor"), true},
		"a ClusterRoleBinding of it":     {newer("global"), true},
		"a ClusterRole of that":          {newer("all"), true},
		"the account was created again":  {func(w map[string]olmcore.Object) { w["account"].SetUID("another") }, true},
		"another account's binding":      {newer("bystander"), false},
		"a Role of another namespace":    {newer("elsewhere"), false},
		"the group's annotations":        {newer("group"), false},
		"the group names another account": {func(w map[string]olmcore.Object) {
			w["group"].(*operatorsv1.OperatorGroup).Spec.ServiceAccountName = "strong"
		}, true},
		"the group no longer names an account": {func(w map[string]olmcore.Object) {
			g := w["group"].(*operatorsv1.OperatorGroup)
			g.Spec.ServiceAccountName, g.Status.ServiceAccountRef = "", nil
		}, true},
		"the version's spec":   {func(w map[string]olmcore.Object) { w["csv"].SetGeneration(2) }, true},
		"the version's status": {newer("csv"), false},
	} {
		t.Run(name, func(t *testing.T) {
			before := judge(t, frozenWorld(), nil)
			require.Empty(t, before.Actions)
			require.Equal(t, 50*time.Second, before.RequeueAfter)
			require.NotNil(t, before.Judged)
			world := frozenWorld()
			c.change(world)
			out := judge(t, world, before.Judged)
			require.Equal(t, c.want, len(out.Transitions) == 1, "%v", out.Transitions)
			require.Equal(t, c.want, out.Judged == nil, "a CSV that is tried again is judged anew")
		})
	}
}

// TestCSVWithoutPermissionsIsRetriedWithBackoff checks that a CSV recovers after a restart, after a grant that no Role
// shows, and after a change in the same second. The phase stays Failed all the time. OLM's case: a group's
// ServiceAccount without permission: frozen until RBAC changes.
func TestCSVWithoutPermissionsIsRetriedWithBackoff(t *testing.T) {
	in := input(failed, "InstallComponentFailedNoRetry", "install strategy failed: no")
	in.Now = in.ClusterServiceVersion.Status.LastTransitionTime.Add(time.Hour)
	for i, minutes := range []time.Duration{1, 2, 4, 8, 10, 10} {
		backoff := minutes * time.Minute
		out := reconciled(t, in)
		require.Equal(t, []string{"create Deployment cool"}, csvtest.Writes(out.Actions), i)
		forbidden := apierrors.NewForbidden(schema.GroupResource{Group: "apps", Resource: "deployments"}, "cool", nil)
		in.LastRun = olmcore.LastResultsOf(in.LastRun, out.Actions, &olmcore.ActionError{Action: out.Actions[0], Err: forbidden}, in.Now)
		in.ClusterServiceVersion.Status.Message = "install strategy failed: " + forbidden.Error()
		in.Judged = out.Judged
		out = reconciled(t, in)
		require.Empty(t, out.Actions)
		require.Equal(t, backoff, out.RequeueAfter)
		in.Judged, in.Now = out.Judged, in.Now.Add(backoff-time.Second)
		require.Empty(t, reconciled(t, in).Actions)
		in.Now = in.Now.Add(time.Second)
	}
}

// TestPermissionsGrantedInTheSameSecond grants permissions and removes the ServiceAccount from the group with one
// apply. The CSV is installed soon afterwards, whether the caller passes Judged or not.
func TestPermissionsGrantedInTheSameSecond(t *testing.T) {
	ctx := context.Background()
	for name, grant := range map[string]func(t *testing.T, cluster *fake.Cluster, allow func()){
		"a Role and its binding": func(t *testing.T, cluster *fake.Cluster, allow func()) {
			require.NoError(t, cluster.Create(
				&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "installer"}},
				&rbacv1.RoleBinding{
					ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "installer"}, RoleRef: rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "Role", Name: "installer"},
					Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "ns", Name: "weak"}},
				}))
			allow()
		},
		"the group no longer names an account": func(t *testing.T, cluster *fake.Cluster, _ func()) {
			require.NoError(t, cluster.Edit(olmcore.Key{Group: "operators.coreos.com", Kind: "OperatorGroup", Namespace: "ns", Name: "group"}, func(o olmcore.Object) {
				o.(*operatorsv1.OperatorGroup).Spec.ServiceAccountName = ""
			}))
		},
	} {
		for _, forgets := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				cluster, driver := newWorld(csv.Config{})
				driver.Controllers = controllersWith(csv.Config{}, func(in *csv.Input) {
					if forgets {
						in.Judged = nil
					}
				})
				objects := fromFiles("base.yaml", "v1.yaml")
				objects[0].(*operatorsv1.OperatorGroup).Spec.ServiceAccountName = "weak"
				require.NoError(
					t,
					cluster.Create(append(objects, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "weak"}})...),
				)
				allowed := false
				cluster.Authorize = func(as *corev1.ObjectReference, _ olmcore.Verb, target olmcore.Ref) error {
					if as != nil && target.Kind == "Deployment" && !allowed {
						return apierrors.NewForbidden(schema.GroupResource{Group: "apps", Resource: "deployments"}, target.Name, errors.New("weak"))
					}
					return nil
				}
				isFrozen := func() bool { return csvs(cluster)[0].Status.Reason == "InstallComponentFailedNoRetry" }
				for !isFrozen() {
					require.NoError(t, driver.RunFor(ctx, time.Second))
				}
				grant(t, cluster, func() { allowed = true })
				wait := 10 * time.Second
				if forgets {
					wait = 2 * time.Minute
				}
				require.NoError(t, driver.RunFor(ctx, wait))
				require.Equal(t, v1alpha1.CSVPhaseSucceeded, csvs(cluster)[0].Status.Phase, csvs(cluster)[0].Status.Message)
			})
		}
	}
}
