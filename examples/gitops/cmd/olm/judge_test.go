// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/olmcore/olm/examples/apiserver"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/olmcore"
)

// export is what a cluster prints in which a plan allows 9 replicas at most of Crons that have replicas.
func export(t *testing.T, replicas map[string]int) string {
	objects, err := apiserver.StricterSchema(replicas)
	require.NoError(t, err)
	c := fake.NewCluster(time.Now())
	require.NoError(t, c.Load(objects...))
	var text strings.Builder
	for _, o := range c.Objects() {
		m, err := olmcore.ToMap(o)
		require.NoError(t, err)
		data, err := yaml.Marshal(m)
		require.NoError(t, err)
		text.WriteString("---\n" + string(data))
	}
	return text.String()
}

// TestAPlanIsJudgedByTheCustomResourcesOfTheInput: what is not there is not taken for absent, unless it is said to be.
func TestAPlanIsJudgedByTheCustomResourcesOfTheInput(t *testing.T) {
	const unread = "error listing crons.example.com of version v1: Cron objects were not read; add what kubectl get crons.example.com -A -o yaml prints to the input, " +
		"with --all-resources where that is nothing, or judge no custom resources (--judge=false)"
	for name, c := range map[string]struct {
		replicas map[string]int
		flags    []string
		refused  string // empty: the definition is written
	}{
		"one that breaks":                 {map[string]int{"fits": 9, "large": 10}, nil, `Cron "ops/large": updated validation is too restrictive: [].spec.replicas: Invalid value: 10`},
		"one that breaks, all are there":  {map[string]int{"large": 10}, []string{"--all-resources"}, `Cron "ops/large": updated validation is too restrictive: `},
		"one that breaks is not judged":   {map[string]int{"large": 10}, []string{"--judge=false"}, ""},
		"all fit":                         {map[string]int{"fits": 9}, nil, ""},
		"none in the input":               {nil, nil, unread},
		"none in the input, nor anywhere": {nil, []string{"--all-resources"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			log, err := plan(t, dir, export(t, c.replicas), append([]string{"--complete", "--ignore-checks", "crds", "--only", "installplan"}, c.flags...)...)
			require.NoError(t, err)
			_, err = os.Stat(filepath.Join(dir, "apply", "cluster", "customresourcedefinition.apiextensions.k8s.io_crons.example.com.yaml"))
			if c.refused == "" {
				require.NoError(t, err, log)
				return
			}
			require.ErrorIs(t, err, os.ErrNotExist, log)
			status, err := os.ReadFile(filepath.Join(dir, "status.yaml"))
			require.NoError(t, err, log)
			var written struct{ Status struct{ Message string } }
			require.NoError(t, yaml.Unmarshal(status, &written))
			require.Contains(t, written.Status.Message, c.refused)
		})
	}
}
