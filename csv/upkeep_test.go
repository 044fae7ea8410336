// SPDX-License-Identifier: Apache-2.0

package csv_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmcore/olm/csv/certificate"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/olmcore"
)

// waitingSuccessor returns version 2 of the operator that the API server calls. It requires an API that nobody provides.
func waitingSuccessor() *v1alpha1.ClusterServiceVersion {
	c := called("cool.v2", 2)
	c.Spec.Replaces = "cool.v1"
	c.Spec.CustomResourceDefinitions.Required = []v1alpha1.CRDDescription{{Name: "warms.example.com", Version: "v1", Kind: "Warm"}}
	return c
}

func phaseIn(cluster *fake.Cluster, name string) phaseName {
	if c := fake.Find[*v1alpha1.ClusterServiceVersion](cluster, "ns", name); c != nil {
		return c.Status.Phase
	}
	return "gone"
}

// TestReplacingVersionRenewsItsCertificates checks that a version that waits for its successor serves longer than its first
// certificate is valid, and that the successor takes over afterwards.
func TestReplacingVersionRenewsItsCertificates(t *testing.T) {
	refuse := func(verb olmcore.Verb, name string) func(*fake.Cluster) {
		return func(cluster *fake.Cluster) {
			cluster.Authorize = func(_ *corev1.ObjectReference, asked olmcore.Verb, target olmcore.Ref) error {
				if asked == verb && target.Kind == "Deployment" && target.Name == name {
					return apierrors.NewForbidden(schema.GroupResource{Group: "apps", Resource: "deployments"}, name, errors.New("a policy says no"))
				}
				return nil
			}
		}
	}
	deleteSecret := func(cluster *fake.Cluster) {
		_ = cluster.Delete(olmcore.Ref{APIVersion: "v1", Kind: "Secret", Namespace: "ns", Name: "cool-service-cert"})
	}
	renamedSuccessor := renamed()
	renamedSuccessor.Spec.CustomResourceDefinitions.Required = waitingSuccessor().Spec.CustomResourceDefinitions.Required
	for name, row := range map[string]struct {
		successor *v1alpha1.ClusterServiceVersion
		// before changes the cluster before the successor exists, later once it waits.
		before, later func(*fake.Cluster)
	}{
		"its successor lacks a requirement":                            {successor: waitingSuccessor()},
		"its successor lacks a requirement and has another Deployment": {successor: renamedSuccessor},
		"the Deployment of its successor is refused":                   {successor: renamed(), before: refuse(olmcore.VerbCreate, "cool-next")},
		"its Secret is deleted":                                        {successor: waitingSuccessor(), later: deleteSecret},
		"its Secret is deleted while its successor fails": {
			successor: renamed(), before: refuse(olmcore.VerbCreate, "cool-next"), later: deleteSecret,
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := context.Background()
			cluster, driver := install(t, called("cool.v1", 1))
			if row.before != nil {
				row.before(cluster)
			}
			create(t, cluster, row.successor.DeepCopy())
			require.NoError(t, driver.RunFor(ctx, 10*time.Minute))
			if row.later != nil {
				row.later(cluster)
				cluster.Advance(time.Minute)
				require.NoError(t, driver.RunFor(ctx, 10*time.Minute))
				require.NoError(t, cluster.CheckServing())
			}
			for range 3 {
				cluster.Advance(certificate.Validity - 2*certificate.RenewBefore)
				for range 36 {
					cluster.Advance(time.Hour)
					require.NoError(t, driver.RunFor(ctx, 5*time.Minute))
					require.NoError(t, cluster.CheckServing())
				}
				require.Equal(t, replacing, phaseIn(cluster, "cool.v1"))
			}
			first := fake.Find[*v1alpha1.ClusterServiceVersion](cluster, "ns", "cool.v1")
			require.True(t, first.Status.CertsRotateAt.After(cluster.Now()))
			cluster.Authorize = nil
			require.NoError(t, cluster.Create(definition("example.com", "Warm", "warms", "v1")))
			for range 40 {
				require.NoError(t, driver.RunFor(ctx, time.Minute))
				require.NoError(t, cluster.CheckServing())
			}
			require.Equal(t, succeeded, phaseIn(cluster, "cool.v2"), "%s", fake.Format(driver.Events))
			require.Equal(t, phaseName("gone"), phaseIn(cluster, "cool.v1"))
		})
	}
}

// create creates a version and what its InstallPlan would have created for it.
func create(t *testing.T, cluster *fake.Cluster, c *v1alpha1.ClusterServiceVersion) {
	t.Helper()
	require.NoError(t, cluster.Create(c))
	for _, o := range needs(c) {
		if err := cluster.Create(o); !apierrors.IsAlreadyExists(err) {
			require.NoError(t, err)
		}
	}
}

// TestSuccessorThatOwnsTheSecretRenewsIt checks that a version which took the Secret over and could not go on keeps the
// certificate valid, in each phase in which it can stay.
func TestSuccessorThatOwnsTheSecretRenewsIt(t *testing.T) {
	ctx := context.Background()
	for name, isUnmet := range map[string]bool{"Failed": false, "Pending": true} {
		t.Run(name, func(t *testing.T) {
			cluster, driver := install(t, called("cool.v1", 1))
			cluster.Authorize = func(_ *corev1.ObjectReference, verb olmcore.Verb, target olmcore.Ref) error {
				if verb == olmcore.VerbUpdate && target.Kind == "Deployment" {
					return apierrors.NewForbidden(schema.GroupResource{Group: "apps", Resource: "deployments"}, target.Name, errors.New("a policy says no"))
				}
				return nil
			}
			next := waitingSuccessor()
			require.NoError(t, cluster.Create(definition("example.com", "Warm", "warms", "v1")))
			create(t, cluster, next)
			require.NoError(t, driver.RunFor(ctx, 10*time.Minute))
			secret := fake.Find[*corev1.Secret](cluster, "ns", "cool-service-cert")
			require.Equal(t, "cool.v2", secret.OwnerReferences[0].Name)
			if isUnmet {
				require.NoError(t, cluster.Delete(olmcore.Ref{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition", Name: "warms.example.com"}))
			}
			cluster.Authorize = nil
			if !isUnmet {
				return
			}
			for range 2 {
				cluster.Advance(certificate.Validity - 2*certificate.RenewBefore)
				for range 36 {
					cluster.Advance(time.Hour)
					require.NoError(t, driver.RunFor(ctx, 5*time.Minute))
					require.NoError(t, cluster.CheckServing(), "%s %s", phaseIn(cluster, "cool.v1"), phaseIn(cluster, "cool.v2"))
				}
			}
		})
	}
}
