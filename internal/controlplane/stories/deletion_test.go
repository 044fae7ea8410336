// SPDX-License-Identifier: Apache-2.0

package stories_test

import (
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmcore/olm/olmcore"
)

// widget returns the custom resource "one" as it is in the cluster, nil when there is none.
func (s *story) widget() olmcore.Object {
	o, err := world.user.Get(s.Context(), schema.GroupVersionKind{Group: s.apiGroup(), Version: "v1", Kind: "Widget"}, s.ns, "one")
	if olmcore.Classify(err) == olmcore.Gone {
		return nil
	}
	require.NoError(s, err)
	return o
}

// withWidget installs an operator with a custom resource.
func (s *story) withWidget(metadata string, changes ...change) {
	s.group()
	s.catalog("community", alphaWith(append(changes, owns("Widget"))...))
	s.subscribe("alpha")
	s.installed("alpha", "alpha.v1.0.0")
	s.aWidget(metadata)
}

// aWidget makes the custom resource "one" once its kind is known.
func (s *story) aWidget(metadata string) {
	s.until("the kind is served", func() bool {
		meta.MaybeResetRESTMapper(world.user.Mapper)
		_, err := world.user.Mapper.RESTMapping(schema.GroupKind{Group: s.apiGroup(), Kind: "Widget"}, "v1")
		return err == nil
	})
	s.given("{apiVersion: NS.example.com/v1, kind: Widget, metadata: {name: one" + metadata + "}}")
}

// uninstall deletes the Subscription and the version.
func (s *story) uninstall() {
	remove[*v1alpha1.Subscription](s, "alpha")
	remove[*v1alpha1.ClusterServiceVersion](s, "alpha.v1.0.0")
}

func (s *story) versionGoes() {
	s.Helper()
	s.until("the version is gone", func() bool { return !exists[*v1alpha1.ClusterServiceVersion](s, "alpha.v1.0.0") })
}

var cleansUp = edited(func(c *v1alpha1.ClusterServiceVersion) { c.Spec.Cleanup.Enabled = true })

func TestCleanupOfAVersion(t *testing.T) {
	t.Parallel()
	tell(t, "its custom resources go when it asks for that", func(s *story) {
		s.withWidget("", cleansUp)
		s.uninstall()
		s.versionGoes()
		require.Nil(s, s.widget())
	})
	tell(t, "one with a finalizer holds the version, which says so, and the operator runs on", func(s *story) {
		s.withWidget(", finalizers: [NS.example.com/hold]", cleansUp)
		s.uninstall()
		eventually(s, "it waits", func() string {
			return string(s.csv("alpha.v1.0.0").Status.Phase) + " " + string(s.csv("alpha.v1.0.0").Status.Reason)
		}, "Deleting WaitingOnCleanup")
		s.atRest()
		require.True(s, exists[*appsv1.Deployment](s, "alpha"))
		require.Equal(s, "one", s.csv("alpha.v1.0.0").Status.Cleanup.PendingDeletion[0].Instances[0].Name)
		held := s.widget().DeepCopyObject().(*unstructured.Unstructured)
		held.SetFinalizers(nil)
		require.NoError(s, world.user.Do(s.Context(), olmcore.UpdateOf(s.widget(), held, byUser)))
		s.versionGoes()
		require.Nil(s, s.widget())
	})
	tell(t, "they stay as long as a Subscription has the version installed", func(s *story) {
		s.withWidget("", cleansUp)
		remove[*v1alpha1.ClusterServiceVersion](s, "alpha.v1.0.0")
		s.versionGoes()
		s.atRest()
		require.NotNil(s, s.widget())
	})
	tell(t, "they stay when a newer version takes over", func(s *story) {
		s.group()
		s.catalog("community", alphaWith(cleansUp, owns("Widget")))
		s.subscribe("alpha")
		s.installed("alpha", "alpha.v1.0.0")
		s.aWidget("")
		s.publish("community", pkg("alpha").channel("stable", "alpha.v1.0.0", "alpha.v2.0.0 replaces alpha.v1.0.0").
			bundle("alpha.v1.0.0", cleansUp, owns("Widget")).bundle("alpha.v2.0.0", cleansUp, owns("Widget")))
		s.installed("alpha", "alpha.v2.0.0")
		s.versionGoes()
		require.NotNil(s, s.widget())
	})
	tell(t, "an annotation lets the version go and leaves all that is left", func(s *story) {
		s.withWidget(", finalizers: [NS.example.com/hold]", cleansUp)
		s.uninstall()
		s.until("it waits", func() bool { return s.csv("alpha.v1.0.0").Status.Reason == "WaitingOnCleanup" })
		edit(s, "alpha.v1.0.0", func(c *v1alpha1.ClusterServiceVersion) { c.Annotations["olmcore/csv-cleanup"] = "abandon" })
		s.versionGoes()
		require.NotNil(s, s.widget())
		held := s.widget().DeepCopyObject().(*unstructured.Unstructured)
		held.SetFinalizers(nil)
		require.NoError(s, world.user.Do(s.Context(), olmcore.UpdateOf(s.widget(), held, byUser)))
	})
}
