// SPDX-License-Identifier: Apache-2.0

package catalog_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/olmcore/olm/catalog"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/fake/scenario"
)

func TestScenarios(t *testing.T) {
	require.NoError(t, scenario.RunAll("testdata/*.txt", scenario.Config{
		Controllers: []fake.Controller{controller(catalog.Config{})},
	}))
}
