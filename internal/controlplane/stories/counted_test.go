// SPDX-License-Identifier: Apache-2.0

package stories_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"sync"
)

// counted are the stories that were told, by file.
var counted struct {
	mu      sync.Mutex
	stories map[string]int
}

// count counts a story of the file from which tell or tellAlone was called.
func count() {
	_, file, _, _ := runtime.Caller(2)
	counted.mu.Lock()
	defer counted.mu.Unlock()
	if counted.stories == nil {
		counted.stories = map[string]int{}
	}
	counted.stories[filepath.Base(file)]++
}

var (
	areaOfREADME  = regexp.MustCompile(`\]\(stories/(\w+_test\.go)\) \| (\d+) \|`)
	totalOfREADME = regexp.MustCompile(`(\d+) stories in all`)
)

// readmeCounts returns what the README says wrongly of how many stories there are: nothing when a part was left out.
func readmeCounts() (wrong error) {
	if flagGiven("test.run") || flagGiven("test.skip") || flagGiven("test.list") {
		return nil
	}
	text, err := os.ReadFile("../README.md")
	if err != nil {
		return err
	}
	said, all := map[string]int{}, 0
	for _, row := range areaOfREADME.FindAllSubmatch(text, -1) {
		said[string(row[1])], _ = strconv.Atoi(string(row[2]))
	}
	for file, n := range counted.stories {
		if all += n; said[file] != n {
			wrong = errors.Join(wrong, fmt.Errorf("README.md: %s has %d stories, not %d", file, n, said[file]))
		}
		delete(said, file)
	}
	for file := range said {
		wrong = errors.Join(wrong, fmt.Errorf("README.md: %s has no stories", file))
	}
	if total := totalOfREADME.FindSubmatch(text); total == nil || string(total[1]) != strconv.Itoa(all) {
		wrong = errors.Join(wrong, fmt.Errorf("README.md: there are %d stories in all, not what it says: %q", all, total))
	}
	return wrong
}
