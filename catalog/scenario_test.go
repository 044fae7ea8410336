// SPDX-License-Identifier: Apache-2.0

package catalog_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/olmcore/olm/catalog"
	"github.com/olmcore/olm/fake/scenario"
	"github.com/olmcore/olm/olmcore/controller"
)

func TestScenarios(t *testing.T) {
	require.NoError(t, scenario.RunAll("testdata/*.txt", scenario.Config{
		Controllers: []controller.Controller{catalogController(catalog.Config{})},
	}))
}
