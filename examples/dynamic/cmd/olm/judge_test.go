// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/olmcore/olm/examples/apiserver"
	"github.com/olmcore/olm/fake"
)

// crons is a cluster with a plan that allows 9 replicas at most, and Crons with replicas.
type crons struct {
	*apiserver.Server
	kubeconfig string
	forbidden  atomic.Bool
	lists      atomic.Int32
}

func serveCrons(t *testing.T, replicas map[string]int) *crons {
	s := &crons{}
	s.Server, s.kubeconfig = serve(t, func(c *fake.Cluster) error {
		objects, err := apiserver.StricterSchema(replicas)
		require.NoError(t, err)
		return c.Load(objects...)
	})
	s.Authorize = func(what authorizationv1.ResourceAttributes) bool {
		if what.Resource != "crons" {
			return true
		}
		require.Equal(t, "list", what.Verb)
		s.lists.Add(1)
		return !s.forbidden.Load()
	}
	return s
}

// runs runs the command some times, and returns the plan and the definition as they are then.
func (s *crons) runs(t *testing.T, args ...string) (plan *v1alpha1.InstallPlan, maximum *float64) {
	for range 4 {
		var out bytes.Buffer
		require.NoError(t, run(t.Context(), append([]string{"--kubeconfig", s.kubeconfig, "--only", "installplan", "--registries=false"}, args...), nil, &out))
	}
	require.NoError(t, s.With(func(c *fake.Cluster) error {
		plan = fake.Find[*v1alpha1.InstallPlan](c, "ops", "stricter")
		crd := fake.Find[*apiextensionsv1.CustomResourceDefinition](c, "", "crons.example.com")
		maximum = crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties["replicas"].Maximum
		return nil
	}))
	return plan, maximum
}

// TestAPlanThatBreaksCustomResourcesIsRefused, which it names, unless nothing is to be judged.
func TestAPlanThatBreaksCustomResourcesIsRefused(t *testing.T) {
	s := serveCrons(t, map[string]int{"fits": 9, "large": 10})
	plan, maximum := s.runs(t)
	require.Contains(t, plan.Status.Message, `error validating existing CRs against new CRD's schema for "crons.example.com": `+
		`error validating example.com/v1, Kind=Cron "ops/large": updated validation is too restrictive: `+
		`[].spec.replicas: Invalid value: 10: spec.replicas in body should be less than or equal to 9`)
	require.Nil(t, maximum)

	s.lists.Store(0)
	plan, maximum = s.runs(t, "--judge=false")
	require.Equal(t, v1alpha1.InstallPlanPhaseComplete, plan.Status.Phase, plan.Status.Message)
	require.Equal(t, 9.0, *maximum)
	require.Zero(t, s.lists.Load())
}

// TestAPlanThatFitsGoesOn: resources are read in pages, and no more of them once the definition is as it shall be.
func TestAPlanThatFitsGoesOn(t *testing.T) {
	replicas := map[string]int{}
	for i := range 250 {
		replicas[fmt.Sprintf("c%d", i)] = i % 10
	}
	s := serveCrons(t, replicas)
	plan, maximum := s.runs(t)
	require.Equal(t, v1alpha1.InstallPlanPhaseComplete, plan.Status.Phase, plan.Status.Message)
	require.Equal(t, 9.0, *maximum)
	const pages = (250 + 19) / 20
	require.Zero(t, s.lists.Load()%pages)
	require.LessOrEqual(t, s.lists.Load(), int32(2*pages))
}

// TestAPlanSaysWhichRightIsMissing, and goes on with it.
func TestAPlanSaysWhichRightIsMissing(t *testing.T) {
	s := serveCrons(t, map[string]int{"fits": 9})
	s.forbidden.Store(true)
	plan, maximum := s.runs(t)
	require.Contains(t, plan.Status.Message, "error listing crons.example.com of version v1: crons.example.com is forbidden: ")
	require.Contains(t, plan.Status.Message, "; bind the account that judges to a ClusterRole with the rule "+
		"{apiGroups: [example.com], resources: [crons], verbs: [list]}, or judge no custom resources (--judge=false)")
	require.Nil(t, maximum)
	s.forbidden.Store(false)
	plan, _ = s.runs(t)
	require.Equal(t, v1alpha1.InstallPlanPhaseComplete, plan.Status.Phase, plan.Status.Message)
}
