"""A window for render mode "human". The only file that needs pygame, and only when one opens."""

from importlib.util import find_spec
from typing import Any

import numpy as np

from windvane.errors import InputError


class Window:
    """Shows pictures at a steady rate; opens with the first."""

    def __init__(self, title: str, fps: int):
        if find_spec("pygame") is None:
            raise InputError('render_mode "human" needs pygame: install windvane[human]')
        self.title, self.fps = title, fps
        self._screen: Any = None

    def show(self, picture: np.ndarray) -> None:
        """Show a (height, width, 3) picture, waiting until it is due."""
        import pygame

        if self._screen is None:
            pygame.display.init()
            pygame.display.set_caption(self.title)
            self._screen = pygame.display.set_mode(picture.shape[1::-1])
            self._clock = pygame.time.Clock()
        pygame.surfarray.blit_array(self._screen, picture.swapaxes(0, 1))
        pygame.event.pump()
        pygame.display.flip()
        self._clock.tick(self.fps)

    def close(self) -> None:
        """Close the window, if it is open."""
        if self._screen is not None:
            import pygame

            pygame.display.quit()
            self._screen = None
