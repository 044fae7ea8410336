// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"sync"
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/catalog"
	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/internal/controlplane"
	"github.com/olmcore/olm/olmcore"
)

// world is a cluster with managers of the library at work: a real one, or the
// fake. As Reader and Executor it serves the person in front of it.
type world interface {
	olmcore.Reader
	olmcore.Executor
	addNode(name string)
	failNode(name string)
	// start lets so many managers work, each with no memory of what was before; stop ends them.
	start(managers int)
	stop()
	// until waits until a condition holds, with the world at work, and fails the test when it takes too long.
	until(what string, condition func() bool)
	// published tells the managers that the catalog has other content.
	published()
	// settle waits until the managers have nothing to do any more.
	settle()
	// done returns everything that the managers did and said until now.
	done() []report
}

// report is one result of a reconcile, and what became of its actions.
type report struct {
	manager, controller string
	key                 types.NamespacedName
	result              olmcore.Result
	err                 error
}

// reports collects them from several managers.
type reports struct {
	mu  sync.Mutex
	all []report
}

func (r *reports) add(one report) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, one)
}

func (r *reports) done() []report {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]report(nil), r.all...)
}

// quick is what both worlds configure: seconds where minutes are the default. The grace of a silent node is longer than
// its Pods are tolerated, so that these are marked for deletion before they are replaced, also on a busy machine.
var quick = catalog.Config{
	NodeUnreachableGrace: 6 * time.Second, NodeNotReadyGrace: 2 * time.Second, NodeGoneGrace: 2 * time.Second,
}

// options are those of both worlds.
func options(connection func(catalog.Input, string) *catalog.Connection) controllers.Options {
	return controllers.Options{Catalog: quick, KubernetesVersion: kubernetesVersion, Resolve: content.resolve, Connection: connection, Sweeps: true}
}

var asUser = olmcore.Cause{Reason: "User", Message: "a person does it"}

// get returns an object, the zero T when there is none.
func get[T olmcore.Object](t testing.TB, w world, namespace, name string) T {
	o, err := olmcore.Get[T](t.Context(), w, namespace, name)
	require.NoError(t, err)
	return o
}

func list[T olmcore.Object](t testing.TB, w world, namespace string) []T {
	all, err := olmcore.List[T](t.Context(), w, namespace, nil)
	require.NoError(t, err)
	return all
}

func create(t testing.TB, w world, objects ...olmcore.Object) {
	for _, o := range objects {
		o.GetObjectKind().SetGroupVersionKind(olmcore.GVKOf(o))
		require.NoError(t, w.Do(t.Context(), olmcore.CreateOf(o, asUser)), olmcore.KeyOf(o))
	}
}

// edit changes an object's spec and metadata, again when another was faster.
func edit[T olmcore.Object](t testing.TB, w world, namespace, name string, change func(T)) {
	write(t, w, namespace, name, change, func(before, after T) olmcore.Action { return olmcore.UpdateOf(before, after, asUser) })
}

// editStatus changes an object's status.
func editStatus[T olmcore.Object](t testing.TB, w world, namespace, name string, change func(T)) {
	write(t, w, namespace, name, change, func(before, after T) olmcore.Action { return olmcore.UpdateStatusOf(before, after, asUser) })
}

func write[T olmcore.Object](t testing.TB, w world, namespace, name string, change func(T), action func(before, after T) olmcore.Action) {
	for range 20 {
		before := get[T](t, w, namespace, name)
		after := before.DeepCopyObject().(T)
		change(after)
		err := w.Do(t.Context(), action(before, after))
		if !apierrors.IsConflict(err) {
			require.NoError(t, err)
			return
		}
	}
	require.FailNow(t, "the object changes all the time", "%s/%s", namespace, name)
}

func remove(t testing.TB, w world, o olmcore.Object) {
	require.NoError(t, w.Do(t.Context(), olmcore.DeleteOf(o, asUser)))
}

// namespaces creates namespaces, and waits until Pods can be created there.
func namespaces(t testing.TB, w world, names ...string) {
	for _, name := range names {
		create(t, w, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	for _, name := range names {
		if _, real := w.(*realWorld); real {
			w.until("ServiceAccount default in "+name, func() bool { return get[*corev1.ServiceAccount](t, w, name, "default") != nil })
		}
	}
}

func catalogSource() *v1alpha1.CatalogSource {
	return &v1alpha1.CatalogSource{
		ObjectMeta: metav1.ObjectMeta{Namespace: "olm", Name: "community"},
		Spec: v1alpha1.CatalogSourceSpec{SourceType: v1alpha1.SourceTypeGrpc, Image: "registry.example.com/catalog:v1",
			GrpcPodConfig: &v1alpha1.GrpcPodConfig{SecurityContextConfig: v1alpha1.Restricted, Tolerations: []corev1.Toleration{
				{Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(1))},
			}}},
	}
}

// republish is what makes managers resolve anew.
func republish(t testing.TB, w world) {
	edit(t, w, "olm", "community", func(c *v1alpha1.CatalogSource) { c.Spec.DisplayName += "." })
}

func operatorGroup(namespace string) *operatorsv1.OperatorGroup {
	return &operatorsv1.OperatorGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "group"},
		Spec:       operatorsv1.OperatorGroupSpec{TargetNamespaces: []string{namespace}},
	}
}

func subscribe(namespace, name string, approval v1alpha1.Approval) *v1alpha1.Subscription {
	return &v1alpha1.Subscription{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: &v1alpha1.SubscriptionSpec{Package: name, Channel: "stable", CatalogSource: "community",
			CatalogSourceNamespace: "olm", InstallPlanApproval: approval},
	}
}

// eachWorld runs a story in which no node fails in the fake and in the real world: a busy machine does not make one
// fail.
func eachWorld(t *testing.T, story func(t *testing.T, w world)) (fake, live recorded) {
	return eachWorldWith(t, controlplane.Options{NodeMonitorGrace: 5 * time.Minute}, story)
}

func eachWorldWith(t *testing.T, o controlplane.Options, story func(t *testing.T, w world)) (fake, live recorded) {
	t.Run("fake", func(t *testing.T) {
		w := newFakeWorld(t)
		story(t, w)
		w.settle()
		fake = record(t, w)
	})
	t.Run("real", func(t *testing.T) {
		w := newRealWorldWith(t, o)
		story(t, w)
		w.settle()
		live = record(t, w)
		w.check()
	})
	return fake, live
}
