// SPDX-License-Identifier: Apache-2.0

package olmruntime_test

import (
	"context"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/examples/controllerruntime/olmruntime"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/olmcore/controller"
	"github.com/olmcore/olm/subscription/resolution"
)

// TestContentThatComesLaterWakesItsSubscriptions: no object of the cluster changes when a catalog was read.
func TestContentThatComesLaterWakesItsSubscriptions(t *testing.T) {
	t.Parallel()
	s, config := serve(t, newCluster(t, time.Now()))
	live(t, s)
	key := types.NamespacedName{Namespace: "olm", Name: "community"}
	content, came := &controllers.Catalogs{GlobalNamespace: "olm", Awaited: true}, make(chan struct{})
	o := controllers.Options{Watch: func(ctx context.Context, changed func(controller.Change)) {
		select {
		case <-ctx.Done():
		case <-came:
			source := &v1alpha1.CatalogSource{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
			changed(controller.Change{Old: source, New: source})
		}
	}}
	content.Serve(&o)
	defer start(t, config, o, &heard{})()
	do(t, s, func(c *fake.Cluster) error { return c.Create(subscription("alpha", v1alpha1.ApprovalAutomatic)) })
	atRest(t, s)
	do(t, s, func(c *fake.Cluster) error {
		status := fake.Find[*v1alpha1.Subscription](c, "ops", "alpha").Status
		require.Empty(t, status.GetCondition(v1alpha1.SubscriptionResolutionFailed).Message, "nothing is concluded before")
		return nil
	})
	content.Put(resolution.CatalogState{Key: key, Content: catalogs(t).Content[key]})
	close(came)
	until(t, s, "alpha is installed", succeeded("alpha"))
}

// TestAKindIsReadOnceItsDefinitionIsCreated checks that the watch of CustomResourceDefinitions ends the time for which
// a kind that was not served is not read. That time is 4 s at the third answer.
func TestAKindIsReadOnceItsDefinitionIsCreated(t *testing.T) {
	t.Parallel()
	s, config := serve(t, newCluster(t, time.Now()))
	live(t, s)
	mgr, err := olmruntime.SetupWithManager(usersManager(t, config, ctrl.Options{}), olmruntime.Options{}, controllers.InstallPlan)
	require.NoError(t, err)
	defer run(t, mgr)()
	isServed := func() bool {
		_, err := mgr.List(t.Context(), noteKind, "", nil)
		return err == nil
	}
	for _, pause := range []time.Duration{0, time.Second, 2 * time.Second} {
		time.Sleep(pause + 10*time.Millisecond)
		require.False(t, isServed())
	}
	refused := time.Now()
	do(t, s, func(c *fake.Cluster) error { return c.Create(noteDefinition()) })
	require.Eventually(t, isServed, 10*time.Second, 10*time.Millisecond)
	require.Less(t, time.Since(refused), 4*time.Second)
}
