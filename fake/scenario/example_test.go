// SPDX-License-Identifier: Apache-2.0

package scenario_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/olmcore/olm/fake/olm"
	"github.com/olmcore/olm/fake/scenario"
)

// A story in a file, run with OLM's controllers. A test names all files of a folder: scenario.RunAll("testdata/*.txt",
// config).
func ExampleRun() {
	const story = `# A user changes a ConfigMap.
load nodes=a
apiVersion: v1
kind: ConfigMap
metadata: {namespace: ops, name: settings}
data: {color: red}
----

edit ConfigMap ops/settings
data: {color: blue}
----

show ConfigMap ops/settings data
----
data:
  color: blue

`
	dir, err := os.MkdirTemp("", "story")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path := filepath.Join(dir, "settings.txt")
	if err := os.WriteFile(path, []byte(story), 0o600); err != nil {
		panic(err)
	}
	fmt.Println(scenario.Run(path, scenario.Config{Controllers: (&olm.OLM{}).Controllers()}))
	// Output:
	// <nil>
}
